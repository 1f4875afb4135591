"""The whole window, driven as a person drives it, over the real bridge and a scripted session."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton

from gui import samples
from gui.appearance import Choice
from gui.session import Phase
from gui.theme import LIGHT
from gui.window import Window
from runtime.cluster.messages import Failed, Text
from tests.gui.scripted import ScriptedServices, bridged


def phase(window):
    return window.store.session.phase


def press(window, name):
    button = window.findChild(QPushButton, name)
    assert button.isEnabled(), button.toolTip()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def status_of(window):
    return window.header.status.text()


def test_from_an_empty_window_to_an_answer_and_back(qtbot, window):
    script = ScriptedServices()
    with bridged(window, script):
        qtbot.waitUntil(lambda: len(window.editor.cards) == 3)
        handle = window.editor.handles[0]
        start = QPoint(round(handle.grip_x - handle.x()), 20)
        QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=start)
        QTest.mouseMove(handle, start - QPoint(round(5 * window.editor.geometry_now.cell_width), 0))
        QTest.mouseRelease(handle, Qt.MouseButton.LeftButton)
        assert window.editor.view.counts == (5, 15, 10)

        press(window, "start_button")
        qtbot.waitUntil(lambda: phase(window) is Phase.RUNNING)
        assert "Running on Virtual A" in status_of(window)
        assert window.editor.cards[0].view.words == "Running · layers 0–4"

        QTest.keyClicks(window.chat.composer.box, "What is the capital of France?")
        QTest.keyClick(window.chat.composer.box, Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: bool(window.chat.answers) and "TTFT" in window.chat.answers[0].footer)
        assert window.chat.answers[0].text.strip() == "The capital is Paris."
        qtbot.waitUntil(lambda: len(window.live.speed.series) > 0)

        press(window, "start_button")
        qtbot.waitUntil(lambda: phase(window) is Phase.IDLE)
        assert window.chat.answers[0].text.strip() == "The capital is Paris."
        assert window.editor.handles[0].isEnabled()
        sent = script.sessions[0].sent
        assert len(sent) == 1
    assert window.editor.view.counts == (5, 15, 10)


def test_the_plan_that_starts_is_the_plan_that_was_shown(qtbot, demo_window):
    demo_window.store.move_boundary(0, 5)
    demo_window.store.move_boundary(1, 23)
    with qtbot.waitSignal(demo_window.session_wanted) as wanted:
        press(demo_window, "start_button")
    plan, nodes = wanted.args
    assert [(stage.first_layer, stage.last_layer) for stage in plan.stages] == [(0, 4), (5, 22), (23, 29)]
    assert nodes == samples.virtual_nodes()


def test_start_that_cannot_start_says_why_in_text_and_tooltip(window):
    window.show_layout(samples.LARGE_MODEL)
    window.show_nodes(samples.virtual_nodes())
    assert not window.header.start.isEnabled()
    reason = window.store.preview.refusal
    assert status_of(window) == reason
    assert window.header.start.toolTip() == reason
    assert window.menus.start.toolTip() == reason


def test_without_nodes_or_model_the_window_says_what_it_waits_for(window):
    assert "choose a model" in status_of(window)
    assert window.welcome.isVisible()
    window.show_layout(samples.SMALL_MODEL)
    assert "no node is in reach" in status_of(window)
    assert window.header.title.text() == "SmolLM2-135M-Instruct"
    assert window.header.subtitle.text().startswith("30 layers · 115 MB")


def test_no_control_is_disabled_without_its_reason(window):
    states = [
        lambda: None,
        lambda: window.show_layout(samples.SMALL_MODEL),
        lambda: window.show_nodes(samples.macs()),
        lambda: window.store.set_mode("tensor"),
        lambda: window.show_nodes(samples.virtual_nodes()),
        window.start_session,
        lambda: window.receive(samples.ready(window.store.session.plan)),
        window.stop_session,
    ]
    for state in states:
        state()
        controls = [*window.findChildren(QPushButton), *window.header.mode.segments.values(), *window.editor.handles]
        for control in controls:
            if control.isVisible() and not control.isEnabled():
                assert control.toolTip(), control.objectName()
        for action in window.findChildren(QAction):
            if not action.isEnabled() and action.text():
                assert action.toolTip(), action.text()


def test_tensor_mode_that_is_refused_says_why_before_and_after_it_is_chosen(window):
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.macs())
    tensor = window.header.mode.segments["tensor"]
    assert "9 attention heads" in tensor.toolTip()
    QTest.mouseClick(tensor, Qt.MouseButton.LeftButton)
    assert window.store.mode == "tensor"
    assert "9 attention heads" in status_of(window)
    assert not window.header.start.isEnabled()
    QTest.mouseClick(window.header.mode.segments["pipeline"], Qt.MouseButton.LeftButton)
    assert window.header.start.isEnabled()


def test_even_is_a_button_and_can_be_undone(demo_window):
    demo_window.store.move_boundary(0, 3)
    press(demo_window, "even_button")
    assert demo_window.editor.view.counts == (10, 10, 10)
    assert demo_window.menus.undo.text() == "Undo Even Split"
    demo_window.menus.undo.trigger()
    assert demo_window.editor.view.counts == (3, 17, 10)


def test_undo_waits_while_a_session_runs(demo_window):
    demo_window.store.move_boundary(0, 3)
    demo_window.start_session()
    assert not demo_window.menus.undo.isEnabled()
    demo_window.menus.undo.trigger()
    assert demo_window.editor.view.counts == (3, 17, 10)


def test_loading_can_be_cancelled(qtbot, window):
    script = ScriptedServices(hang=True)
    with bridged(window, script):
        qtbot.waitUntil(window.header.start.isEnabled)
        press(window, "start_button")
        assert window.header.start.text() == "Cancel"
        press(window, "start_button")
        qtbot.waitUntil(lambda: phase(window) is Phase.IDLE)
    assert window.banner.words == ""
    assert script.cancelled or not script.sessions


def test_a_failure_is_named_on_top_on_its_card_and_in_the_chat(qtbot, demo_window):
    demo_window.start_session()
    demo_window.receive(samples.ready(demo_window.store.session.plan))
    QTest.keyClicks(demo_window.chat.composer.box, "Tell me a story")
    QTest.keyClick(demo_window.chat.composer.box, Qt.Key.Key_Return)
    request = demo_window.chat.exchanges[-1].request_id
    demo_window.receive(Text(request, "Once", (1,)))
    demo_window.receive(Failed("Virtual B stopped answering.", "virtual-b"))
    assert demo_window.banner.isVisible()
    assert demo_window.banner.words == "Virtual B stopped answering."
    assert demo_window.editor.cards[1].view.words == "The last run failed here"
    assert demo_window.chat.answers[-1].text == "Once"
    assert demo_window.chat.answers[-1].error == "Virtual B stopped answering."
    assert demo_window.header.start.text() == "Start"
    press(demo_window, "banner_dismiss")
    assert not demo_window.banner.isVisible()
    assert demo_window.editor.cards[1].view.words.startswith("Fits")


def test_starting_again_takes_the_old_failure_away(demo_window):
    demo_window.start_session()
    demo_window.receive(Failed("Virtual B stopped answering.", "virtual-b"))
    demo_window.start_session()
    assert not demo_window.banner.isVisible()
    assert demo_window.store.session.failure is None


def test_trouble_outside_a_session_is_said_too(qtbot, window):
    script = ScriptedServices()
    script.layout_error = RuntimeError("disk on fire")
    with bridged(window, script):
        qtbot.waitUntil(lambda: "disk on fire" in window.banner.words)


def test_closing_an_idle_window_asks_nothing(qtbot, appearance):
    window = Window(appearance)
    qtbot.addWidget(window)
    window.show()
    with qtbot.waitSignal(window.closed):
        window.close()


@pytest.mark.parametrize("answer", ["stop_and_close", "cancel"])
def test_closing_while_a_session_runs_asks_first(qtbot, appearance, answer):
    window = Window(appearance)
    qtbot.addWidget(window)
    window.show()
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.virtual_nodes())
    window.start_session()
    with qtbot.assertNotEmitted(window.closed):
        window.close()
        window.close()  # asking twice does not ask twice
    assert window.isVisible()
    (box,) = window.findChildren(QMessageBox)
    if answer == "cancel":
        box.button(QMessageBox.StandardButton.Cancel).click()
        QApplication.processEvents()
        assert window.isVisible()
        window.close_now()
    else:
        with qtbot.waitSignal(window.closed):
            press(window, "stop_and_close")
    assert not window.isVisible()


@pytest.mark.parametrize("virtual", [True, False])
def test_a_model_on_real_machines_can_run_on_without_the_window(qtbot, appearance, virtual):
    window = Window(appearance)
    qtbot.addWidget(window)
    window.show()
    script = ScriptedServices(nodes=samples.virtual_nodes() if virtual else samples.macs())
    with bridged(window, script):
        qtbot.waitUntil(window.header.start.isEnabled)
        press(window, "start_button")
        qtbot.waitUntil(lambda: phase(window) is Phase.RUNNING)
        window.close()
        (box,) = window.findChildren(QMessageBox)
        keep = box.findChild(QPushButton, "keep_running")
        assert (keep is None) is virtual
        with qtbot.waitSignal(window.closed):
            press(window, "stop_and_close" if virtual else "keep_running")
    (session,) = script.sessions
    assert (session.left, session.closed) == (not virtual, virtual)


def test_the_appearance_can_be_changed_at_any_time(demo_window):
    demo_window.live.load_chart()
    demo_window.start_session()
    demo_window.appearance.choose(Choice.LIGHT)
    assert demo_window.header._theme is LIGHT
    assert not demo_window.grab().isNull()
    demo_window.appearance.choose(Choice.DARK)


def test_menus_have_their_roles_and_keys(window):
    menus = window.menus
    assert menus.about.menuRole() is QAction.MenuRole.AboutRole
    assert menus.quit.menuRole() is QAction.MenuRole.QuitRole
    assert menus.start.menuRole() is QAction.MenuRole.NoRole
    keys = [action.shortcut().toString() for action in window.findChildren(QAction) if not action.shortcut().isEmpty()]
    assert len(keys) == len(set(keys))


def test_the_keyboard_alone_moves_boundaries_and_reaches_the_chat(demo_window):
    demo_window.activateWindow()
    QApplication.processEvents()
    demo_window.menus.boundary.trigger()
    assert demo_window.editor.handles[0].hasFocus()
    QTest.keyClick(demo_window.editor.handles[0], Qt.Key.Key_Left)
    demo_window.menus.boundary.trigger()
    assert demo_window.editor.handles[1].hasFocus()
    demo_window.menus.chat.trigger()
    assert demo_window.chat.composer.box.hasFocus()
    assert demo_window.editor.view.counts == (9, 11, 10)


def test_every_control_has_a_name_for_assistive_technology(demo_window):
    for button in demo_window.findChildren(QPushButton):
        if button.isVisible():
            assert button.text() or button.accessibleName(), button.objectName()
    for segment in demo_window.header.mode.segments.values():
        assert segment.accessibleName()
