"""The dialog about this Mac: the network's test in words, and sharing at login."""

import pytest

from discovery.local_network import Verdict, advice
from gui.keeper import Keeper
from gui.nodes.this_mac import ThisMacDialog
from tests.gui.scripted import ScriptedServices, bridged


@pytest.fixture
def dialog(window):
    window.show()
    opened = ThisMacDialog(window.appearance.theme, window)
    opened.show()
    yield opened
    opened.close()


@pytest.mark.parametrize("verdict", list(Verdict))
def test_each_verdict_says_what_to_do(dialog, verdict):
    dialog.show_verdict(verdict)
    problem, what_to_do = advice(verdict)
    assert dialog.problem.text() == problem
    assert dialog.advice.text() == ("" if verdict is Verdict.WORKS else what_to_do)
    assert dialog.settings.isVisible() == (verdict in {Verdict.PERMISSION_OFF, Verdict.PERMISSION_STUCK})


def test_a_test_that_runs_is_not_started_twice(dialog, qtbot):
    with qtbot.waitSignal(dialog.test_wanted):
        dialog.begin()
    assert not dialog.again.isEnabled()
    assert dialog.again.toolTip()
    dialog.show_verdict(Verdict.WORKS)
    with qtbot.waitSignal(dialog.test_wanted):
        dialog.again.click()


def test_sharing_is_switched_where_it_can_be(dialog, qtbot):
    assert not dialog.share.isEnabled()
    dialog.show_sharing(on=False, reason="Login items are a Mac's.")
    assert dialog.share.toolTip() == "Login items are a Mac's."
    dialog.show_sharing(on=False)
    with qtbot.waitSignal(dialog.share_wanted, check_params_cb=lambda on: on):
        dialog.share.click()


def test_the_first_window_of_a_machine_is_known(window, tmp_path):
    assert Keeper(window, tmp_path).first_time
    Keeper(window, tmp_path).save()
    assert not Keeper(window, tmp_path).first_time


def test_the_window_tests_the_network_and_switches_sharing(qtbot, window):
    script = ScriptedServices()
    with bridged(window, script):
        window.show()
        window.menus.this_mac.trigger()
        dialog = window.trust.this_mac
        qtbot.waitUntil(lambda: dialog.problem.text() == advice(Verdict.PERMISSION_OFF)[0])
        qtbot.waitUntil(dialog.share.isEnabled)
        dialog.share.click()
        qtbot.waitUntil(lambda: script.machine.on)
        script.machine.refusal = "macOS did not take the login item."
        dialog.share.click()
        qtbot.waitUntil(lambda: dialog.trouble.text() == script.machine.refusal)
        assert dialog.share.isChecked()
        dialog.close()
    assert window.trust.this_mac is None
