"""The window over a real cluster: three agents, real workers, a real model, from empty to an answer."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from gui.bridge import Bridge
from gui.session import Phase
from gui.wiring import connect
from tests.running import controllers, workers

pytestmark = pytest.mark.timeout(300)

LOAD_MS = 120_000
ANSWER_MS = 120_000
STOP_MS = 40_000


@pytest.fixture
def bridge(window, agents, demo_model) -> Iterator[Bridge]:
    """What ``run_window`` puts behind the window."""
    made = Bridge(agents.home.folder, demo_model)
    connect(window, made)
    made.start()
    yield made
    made.shutdown()
    assert made.join(40)


def drag(window, index, layers):
    """Move a boundary by a number of layers, with the mouse."""
    editor, handle = window.editor, window.editor.handles[index]
    start = QPoint(round(handle.grip_x - handle.x()), handle.height() // 2)
    there = handle.mapTo(editor, start) + QPoint(round(layers * editor.geometry_now.cell_width), 0)
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(handle, handle.mapFrom(editor, there))
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=handle.mapFrom(editor, there))


def ask(window, question):
    QTest.keyClicks(window.chat.composer.box, question)
    QTest.keyClick(window.chat.composer.box, Qt.Key.Key_Return)


def phase(window):
    return window.store.session.phase


def press_start(window):
    QTest.mouseClick(window.header.start, Qt.MouseButton.LeftButton)


def test_from_an_empty_window_to_an_answer_and_nothing_left(qtbot, window, agents, bridge):
    window.live.load_chart()
    assert window.editor.cards == []

    # The nodes appear by themselves, the model's layers lie evenly over them.
    qtbot.waitUntil(lambda: len(window.editor.cards) == 3, timeout=30_000)
    qtbot.waitUntil(lambda: window.editor.view.counts == (10, 10, 10), timeout=5_000)
    assert [card.view.name for card in window.editor.cards] == ["Apricot", "Cherry", "Damson"]

    # A person drags the boundaries and starts.
    drag(window, 0, -5)
    drag(window, 1, 3)
    assert window.editor.view.counts == (5, 18, 7)
    press_start(window)
    assert phase(window) is Phase.LOADING
    qtbot.waitUntil(lambda: phase(window) is not Phase.LOADING, timeout=LOAD_MS)
    assert phase(window) is Phase.RUNNING, window.banner.words
    assert [card.view.words for card in window.editor.cards] == [
        "Running · layers 0–4",
        "Running · layers 5–22",
        "Running · layers 23–29",
    ]
    for held in window.store.session.held:
        assert held.held_bytes == pytest.approx(held.planned_bytes, rel=0.05)
    assert len(workers(agents)) == 3
    (controller,) = controllers()

    # A question, and its answer as it streams.
    ask(window, "What is the capital of France? Answer in one sentence.")
    qtbot.waitUntil(lambda: not window.chat.answering, timeout=ANSWER_MS)
    answer = window.chat.answers[-1]
    assert "Paris" in answer.text
    assert answer.error == ""
    assert answer.footer.startswith("TTFT ")
    assert "tok/s" in answer.footer
    qtbot.waitUntil(lambda: len(window.live.speed.series) > 0, timeout=5_000)

    # The split changes in the middle of a long answer, which goes on.
    ask(window, "Write a very long story about a fox.")
    qtbot.waitUntil(lambda: len(window.chat.answers[-1].text) > 40, timeout=ANSWER_MS)
    drag(window, 0, 2)
    assert window.strip.view.apply_words.startswith("loads 2 layers on Apricot")
    QTest.mouseClick(window.strip.buttons[0], Qt.MouseButton.LeftButton)
    said = len(window.chat.answers[-1].text)
    qtbot.waitUntil(lambda: window.store.running_counts == (7, 16, 7), timeout=LOAD_MS)
    assert "The split changed in" in window.header.status.text()
    qtbot.waitUntil(lambda: len(window.chat.answers[-1].text) > said + 40, timeout=ANSWER_MS)
    window.live.show_tab("stages")
    qtbot.waitUntil(lambda: len(window.live.stages.rows) == 3, timeout=10_000)

    # It can be stopped; the session goes on.
    QTest.mouseClick(window.chat.composer.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.chat.answering, timeout=30_000)
    assert "on 5 | 18 | 7 · paused" in window.chat.answers[-1].footer
    assert window.chat.answers[-1].footer.endswith("stopped")
    assert phase(window) is Phase.RUNNING

    # Stop: no worker, no controller, and the text is still there.
    press_start(window)
    qtbot.waitUntil(lambda: phase(window) is Phase.IDLE, timeout=STOP_MS)
    assert window.banner.words == ""
    assert "Paris" in window.chat.answers[0].text
    assert workers(agents) == []
    qtbot.waitUntil(lambda: not controller.is_running(), timeout=STOP_MS)
    assert window.header.start.isEnabled(), window.header.status.text()


def test_closing_while_the_model_loads_leaves_nothing(qtbot, window, agents, bridge):
    qtbot.waitUntil(lambda: window.header.start.isEnabled() and len(window.editor.cards) == 3, timeout=30_000)
    press_start(window)
    qtbot.waitUntil(lambda: bool(window.store.session.progress), timeout=LOAD_MS)
    (controller,) = controllers()
    bridge.shutdown()
    qtbot.waitUntil(lambda: not bridge.running, timeout=STOP_MS)
    assert workers(agents) == []
    assert not controller.is_running()


@pytest.mark.matrix
def test_a_worker_that_dies_is_named_and_the_answer_goes_on(qtbot, window, agents, bridge):
    qtbot.waitUntil(lambda: window.header.start.isEnabled() and len(window.editor.cards) == 3, timeout=30_000)
    press_start(window)
    qtbot.waitUntil(lambda: phase(window) is not Phase.LOADING, timeout=LOAD_MS)
    assert phase(window) is Phase.RUNNING, window.banner.words
    ask(window, "Write a very long story about a fox.")
    qtbot.waitUntil(lambda: len(window.chat.answers[-1].text) > 40, timeout=ANSWER_MS)
    said = len(window.chat.answers[-1].text)
    workers(agents)[1].kill()
    qtbot.waitUntil(lambda: window.store.session.outcome is not None, timeout=LOAD_MS)
    assert window.banner.isVisible()
    assert any(name in window.banner.words for name in ("Apricot", "Cherry", "Damson"))
    assert window.banner.words.endswith("The session goes on with 10 | 10 | 10.")
    qtbot.waitUntil(lambda: len(window.chat.answers[-1].text) > said + 40, timeout=ANSWER_MS)
    press_start(window)
    qtbot.waitUntil(lambda: phase(window) is Phase.IDLE, timeout=STOP_MS)
    assert window.chat.answers[-1].error
    qtbot.waitUntil(lambda: workers(agents) == [], timeout=STOP_MS)
