"""Machines that are not paired: shown, paired by a code, added by address, removed; this machine's own code."""

from __future__ import annotations

import msgspec
import pytest

from gui import samples
from runtime.agent.trust_messages import ShownCode
from tests.gui.scripted import ScriptedServices, bridged

MINI, STUDIO = samples.unpaired("Mac mini", "Studio")


@pytest.fixture
def script():
    script = ScriptedServices()
    script.unpaired = (MINI, STUDIO)
    return script


def texts(menu):
    return [action.text() for action in menu.actions()]


def test_unpaired_machines_are_shown_and_go(window):
    window.show()
    assert not window.nearby.isVisible()
    window.show_unpaired((MINI, STUDIO))
    assert window.nearby.isVisible()
    assert [card.accessibleName() for card in window.nearby.cards] == ["Mac mini, not paired", "Studio, not paired"]
    assert texts(window.menus.pair) == ["Mac mini", "Studio"]
    window.show_unpaired(())
    assert not window.nearby.isVisible()
    (nothing,) = window.menus.pair.actions()
    assert not nothing.isEnabled()
    assert nothing.toolTip()


def test_a_name_from_the_network_is_never_markup(window):
    evil = msgspec.structs.replace(MINI, name="<b>a&b</b>")
    window.show_unpaired((evil,))
    assert window.nearby.cards[0]._name.text() == "<b>a&b</b>"
    assert texts(window.menus.pair) == ["<b>a&&b</b>"]


def test_the_right_code_pairs_and_closes_the_dialog(window, script, qtbot):
    with bridged(window, script):
        qtbot.waitUntil(lambda: len(window.nearby.cards) == 2)
        window.nearby.cards[0].button.click()
        dialog = window.trust.pairing
        assert not dialog.isModal()
        assert not dialog.pair_button.isEnabled()
        assert dialog.pair_button.toolTip()
        dialog.field.setText("123 456")
        dialog.pair_button.click()
        qtbot.waitUntil(lambda: window.trust.pairing is None)
    assert script.trust.wishes == [("pair", MINI.node_id, "123456")]


def test_a_wrong_code_is_said_and_can_be_corrected(window, script, qtbot):
    with bridged(window, script):
        qtbot.waitUntil(lambda: len(window.nearby.cards) == 2)
        window.nearby.cards[1].button.click()
        dialog = window.trust.pairing
        dialog.field.setText("999999")
        dialog.pair_button.click()
        assert not dialog.field.isEnabled()
        qtbot.waitUntil(lambda: dialog.trouble.text() == "The code is wrong.")
        assert dialog.field.isEnabled()
        dialog.field.setText("123456")
        dialog.pair_button.click()
        qtbot.waitUntil(lambda: window.trust.pairing is None)


def test_another_machine_takes_the_dialogs_place_and_the_same_one_keeps_it(window):
    window.trust.open_pairing(MINI)
    first = window.trust.pairing
    window.trust.open_pairing(MINI)
    assert window.trust.pairing is first
    window.trust.open_pairing(STUDIO)
    assert window.trust.pairing.node == STUDIO
    window.trust.pairing_over(MINI.node_id, "too late")
    assert window.trust.pairing.trouble.text() == ""


def test_this_machines_code_is_shown_until_the_dialog_is_closed(window, script, qtbot):
    with bridged(window, script):
        window.menus.code.trigger()
        dialog = window.trust.code
        qtbot.waitUntil(lambda: dialog.code.text() == "654 321")
        assert dialog.remaining.text() == "Good for 120 s"
        window.menus.code.trigger()
        assert window.trust.code is dialog
        dialog.close()
        assert window.trust.code is None
        qtbot.waitUntil(lambda: script.trust.wishes == ["show", "hide"])


def test_without_an_agent_there_is_no_code_and_the_dialog_says_so(window, script, qtbot):
    script.trust.refuse_code = "No agent runs on this machine."
    with bridged(window, script):
        window.menus.code.trigger()
        dialog = window.trust.code
        qtbot.waitUntil(lambda: dialog.trouble.text() == "No agent runs on this machine.")
        assert dialog.again.isVisible()
        dialog.close()


def test_a_code_runs_out(window):
    window.trust.open_code()
    dialog = window.trust.code
    dialog.show_code(ShownCode("048213", 2.0))
    assert dialog.code.text() == "048 213"
    dialog._on_second()
    dialog._on_second()
    assert "048" not in dialog.code.text()
    assert dialog.remaining.text() == "It has run out"
    assert dialog.again.isVisible()


def test_an_address_is_checked_before_it_is_taken(window, script, qtbot):
    with bridged(window, script):
        window.menus.address.trigger()
        dialog = window.trust.address
        assert not dialog.add.isEnabled()
        dialog.field.setText("192.168.1.300")
        dialog.add.click()
        assert "no IPv4 address" in dialog.trouble.text()
        dialog.field.setText("studio.local:4000")
        dialog.add.click()
        assert window.trust.address is None
        qtbot.waitUntil(lambda: script.trust.wishes == [("address", "studio.local:4000")])


def test_paired_nodes_can_be_removed_and_virtual_ones_not(window, script, qtbot):
    with bridged(window, script):
        macs = samples.macs()
        window.show_nodes((*macs, *samples.virtual_nodes()))
        assert texts(window.menus.remove) == [mac.resources.name for mac in window.store.nodes[: len(macs)]]
        window.menus.remove.actions()[0].trigger()
        qtbot.waitUntil(lambda: script.trust.wishes == [("remove", macs[0].resources.node_id)])
    window.show_nodes(samples.virtual_nodes())
    assert not window.menus.remove.actions()[0].isEnabled()
