"""The whole way with the keyboard alone, and a role and a name for every control."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from gui import samples
from gui.session import Phase
from runtime.cluster.messages import Resplit
from tests.gui.scripted import ScriptedServices, bridged

_ACTIVE = (QAccessible.Role.PushButton, QAccessible.Role.Slider, QAccessible.Role.RadioButton)


def press(window, keys):
    """A shortcut, as the person presses it."""
    QTest.keySequence(QApplication.focusWidget() or window, QKeySequence(keys))
    QApplication.processEvents()


def focus() -> QWidget:
    there = QApplication.focusWidget()
    assert there is not None
    return there


def tab_to(name) -> QWidget:
    for _ in range(80):
        if focus().objectName() == name:
            return focus()
        QTest.keyClick(focus(), Qt.Key.Key_Tab)
    raise AssertionError(f"Tab does not reach {name}")


def type_question(text):
    QTest.keyClicks(focus(), text)
    QTest.keyClick(focus(), Qt.Key.Key_Return)


def test_from_no_model_to_an_answer_on_another_split(qtbot, window):
    script = ScriptedServices()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    with bridged(window, script, model=None) as bridge:
        qtbot.waitUntil(lambda: [row.isVisible() for row in window.welcome.rows] == [True, True])
        QTest.keyClick(tab_to("model_DeepSeek-V3-4bit"), Qt.Key.Key_Space)
        qtbot.waitUntil(lambda: len(window.editor.cards) == 3)

        press(window, "Ctrl+B")
        for _ in range(5):
            QTest.keyClick(focus(), Qt.Key.Key_Left)
        assert window.editor.view.counts == (5, 15, 10)
        press(window, "Ctrl+Z")
        assert window.editor.view.counts == (10, 10, 10)
        press(window, "Ctrl+2")
        press(window, "Ctrl+E")
        assert window.editor.view.counts == (10, 10, 10)
        first = window.editor.view.cards[0].name
        card = tab_to(window.editor.cards[0].objectName())
        QTest.keyClick(card, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
        assert window.editor.view.cards[1].name == first

        press(window, "Ctrl+R")
        qtbot.waitUntil(lambda: window.store.session.phase is Phase.RUNNING)
        press(window, "Ctrl+L")
        type_question("What is the capital of France?")
        qtbot.waitUntil(lambda: "TTFT" in window.chat.answers[0].footer)

        press(window, "Ctrl+B")
        QTest.keyClick(focus(), Qt.Key.Key_Left)
        press(window, "Ctrl+Return")
        qtbot.waitUntil(lambda: window.store.running_counts == (9, 11, 10) and window.store.session.can_change)
        assert isinstance(script.sessions[0].sent[-1], Resplit)
        press(window, "Ctrl+L")
        type_question("And of Spain?")
        qtbot.waitUntil(lambda: "on 9 | 11 | 10" in window.chat.answers[1].footer)

        press(window, "Ctrl+.")
        qtbot.waitUntil(lambda: window.store.session.phase is Phase.IDLE)
        assert bridge.running


def interfaces(widget):
    found, left = [], [QAccessible.queryAccessibleInterface(widget)]
    while left:
        one = left.pop()
        if one is not None and not one.state().invisible:
            found.append(one)
            left.extend(one.child(index) for index in range(one.childCount()))
    return found


def idle(window):
    pass


def ready(window):
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.virtual_nodes())


def edited(window):
    ready(window)
    window.start_session()
    window.receive(samples.ready(window.store.session.plan))
    window.chat.ask("Hello")
    window.receive(samples.finished(window.chat.exchanges[-1].request_id))
    window.chat.tune.click()
    window.store.move_boundary(0, 5)


@pytest.mark.parametrize("state", [idle, ready, edited])
def test_every_control_has_a_role_and_a_name(window, state):
    state(window)
    QApplication.processEvents()
    controls = [one for one in interfaces(window) if one.state().focusable or one.role() in _ACTIVE]
    assert len(controls) >= 4
    unnamed = [
        (one.role(), one.object())
        for one in controls
        if one.role() == QAccessible.Role.NoRole
        or not (one.text(QAccessible.Text.Name) or one.text(QAccessible.Text.Value))
    ]
    assert unnamed == []
