"""The benchmark pane: fields, table, progress, cancel, and another split that is measured too."""

import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from gui import pane_samples, samples
from gui.bench.keeper import CANCELLED, CHANGED, Step
from gui.bench.pane import NO_MODEL
from gui.bench.words import cells, compared_words, read_numbers, round_words
from gui.session import Phase
from runtime.bench.order import BenchOrder, RoundDone
from runtime.bench.table import Round, StageTime, measured
from runtime.cluster.messages import Failed, Recovering, Resplit, Serving
from tests.gui.scripted import ScriptedServices, bridged

ORDER = BenchOrder((512,), 128, (1,), 2)


def row(layers, decode_seconds, prompt=512):
    stages, first = [], 0
    for name, count in layers:
        stages.append(StageTime(name, first, first + count - 1, 0.01 * count, 0.0, 0.0))
        first += count
    rounds = [Round(1 + seconds, (1.0,), (seconds,)) for seconds in decode_seconds]
    return measured(prompt, 101, 1, rounds, stages)


UNEVEN = row((("A", 5), ("B", 18)), (4.0, 4.4))
EVEN = row((("A", 11), ("B", 12)), (2.0, 2.2))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("512", (512,)), ("1, 4,8", (1, 4, 8)), ("", None), ("0", None), ("1,,2", None), ("many", None), ("9" * 12, None)],
)
def test_numbers_are_read_as_people_write_them(text, numbers):
    assert read_numbers(text) == numbers


def test_the_faster_split_is_marked_only_if_the_rounds_do_not_overlap():
    assert [cell.best for cell in cells(EVEN, (UNEVEN, EVEN))] == [False] * 5 + [True, True]
    assert not any(cell.best for cell in cells(UNEVEN, (UNEVEN, EVEN)))
    near = row((("A", 11), ("B", 12)), (3.9, 4.1))
    assert not any(cell.best for cell in cells(near, (UNEVEN, near)))
    assert not any(cell.best for cell in cells(EVEN, (row((("A", 5), ("B", 18)), (4.0,), prompt=64), EVEN)))


def test_two_splits_are_compared_in_a_sentence():
    assert compared_words(UNEVEN, EVEN) == "11 | 12 decodes 100% faster than 5 | 18."
    assert compared_words(EVEN, UNEVEN) == "5 | 18 decodes 50% slower than 11 | 12."
    assert "alike" in compared_words(UNEVEN, row((("A", 11), ("B", 12)), (3.9, 4.1)))


def test_progress_tells_what_is_left():
    done = RoundDone(512, 1, 1, 31.0)
    assert round_words(done, 2, ORDER, 20.0) == (
        "Round 2 of 3 · prompt 512, 1 at once · 31.0 tok/s in all · about 10 s left"
    )


@pytest.fixture
def running(demo_window):
    """A window whose session runs and serves, at its benchmark."""
    demo_window.store.move_boundary(0, 5)
    demo_window.start_session()
    demo_window.receive(samples.ready(demo_window.store.session.plan))
    demo_window.receive(Serving("http://127.0.0.1:52520/v1", "smol"))
    demo_window.show_pane("bench")
    return demo_window


def test_what_cannot_be_measured_says_why(demo_window):
    pane = demo_window.bench
    demo_window.show_pane("bench")
    assert pane.run.toolTip() == NO_MODEL
    demo_window.start_session()
    assert "loading" in pane.run.toolTip()
    demo_window.receive(samples.ready(demo_window.store.session.plan))
    assert "server" in pane.run.toolTip()
    demo_window.receive(Serving("http://127.0.0.1:52520/v1", "smol"))
    assert pane.run.isEnabled()
    pane.form.fields[0].setText("some")
    assert not pane.run.isEnabled()
    assert pane.words.text().startswith("Prompts: write whole numbers")
    pane.form.fields[0].setText("9000")
    assert "room for 8192" in pane.words.text()
    pane.form.fields[0].setText("512")
    assert pane.run.isEnabled()
    assert pane.words.text() == ""
    pane.form.comparison.setCurrentIndex(2)
    pane.form.changed.emit()
    assert "Move a boundary first" in pane.run.toolTip()


def test_it_measures_the_split_that_runs_and_copies_the_table(qtbot, running):
    with qtbot.waitSignal(running.benching.measure_wanted) as wanted:
        QTest.mouseClick(running.bench.run, Qt.MouseButton.LeftButton)
    order, serving, ranks = wanted.args
    assert order == BenchOrder((512,), 128, (1, 4), 3)
    assert serving.model == "smol"
    assert running.bench.run.text() == "Cancel"
    assert "benchmark" in running.chat.composer.button.toolTip()
    for told in pane_samples.bench(ranks, order):
        running.benching.tell(told)
    running.benching.over("")
    assert running.bench.run.text() == "Measure"
    assert [one.clients for one in running.bench.table.rows] == [1, 4]
    assert running.bench.table.item(0, 0).text().startswith("5 | 15 | 10")
    assert "Virtual B: computes" in running.bench.table.item(0, 0).toolTip()
    running.bench.copy_as("Markdown")
    assert QGuiApplication.clipboard().text().startswith("| split |")
    running.bench.copy_as("CSV")
    assert QGuiApplication.clipboard().text().startswith("split,prompt_tokens")
    running.bench.copy_as("JSON")
    assert len(json.loads(QGuiApplication.clipboard().text())) == 2
    running.bench.clear.click()
    assert running.bench.table.rows == ()
    assert not running.bench.copy.isEnabled()


def test_another_split_ends_it_and_so_does_the_end_of_the_session(qtbot, running):
    running.benching.start(ORDER, "")
    with qtbot.waitSignal(running.benching.cancel_wanted):
        running.receive(Recovering("Virtual B is gone.", "virtual-b"))
    running.benching.over("")
    assert running.bench.words.text() == CHANGED
    running.receive(samples.ready(running.store.session.plan))
    running.benching.start(ORDER, "")
    with qtbot.waitSignal(running.benching.cancel_wanted):
        running.receive(Failed("Virtual A is gone."))
    running.benching.over("The answer broke off.")
    assert not running.benching.busy
    assert running.bench.words.text().startswith("The session ended")


def test_trouble_is_told_and_what_was_measured_stays(running):
    running.benching.start(ORDER, "even")
    running.bench.add_row(UNEVEN)
    running.benching.over("The answer broke off.")
    assert running.bench.words.text() == "The answer broke off."
    assert running.benching.step is Step.NONE
    assert running.bench.table.rows == (UNEVEN,)


def started(qtbot, window, script, counts=(5, 15, 10)):
    qtbot.waitUntil(lambda: len(window.editor.cards) == 3)
    window.store.move_boundary(0, counts[0])
    window.start_session()
    qtbot.waitUntil(lambda: window.store.session.phase is Phase.RUNNING)
    script.on_loop(script.sessions[0].say, Serving("http://127.0.0.1:52520/v1", "smol"))
    window.show_pane("bench")
    qtbot.waitUntil(window.bench.run.isEnabled)


def test_an_even_split_is_measured_too_and_then_the_first_runs_again(qtbot, window):
    script = ScriptedServices()
    with bridged(window, script):
        started(qtbot, window, script)
        window.bench.form.comparison.setCurrentIndex(1)
        window.bench.form.changed.emit()
        QTest.mouseClick(window.bench.run, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: not window.benching.busy)
        assert [layers for _, layers, _ in script.measured] == [(5, 15, 10), (10, 10, 10)]
        assert sum(isinstance(sent, Resplit) for sent in script.sessions[0].sent) == 2
        assert window.store.running_counts == (5, 15, 10)
        assert len(window.bench.table.rows) == 4
        assert "10 | 10 | 10" in window.bench.words.text()
        assert window.bench.run.isEnabled()


def test_it_can_be_cancelled_also_on_the_other_split(qtbot, window):
    script = ScriptedServices()
    with bridged(window, script):
        started(qtbot, window, script)
        script.measures_that_hang = (1, 3)
        QTest.mouseClick(window.bench.run, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: window.bench.words.text().startswith("Round 1 of 8"))
        QTest.mouseClick(window.bench.run, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: window.bench.words.text() == CANCELLED)

        window.bench.form.comparison.setCurrentIndex(1)
        window.bench.form.changed.emit()
        QTest.mouseClick(window.bench.run, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: window.benching.step is Step.SECOND)
        qtbot.waitUntil(lambda: window.bench.words.text().startswith("Round 1 of 8"))
        QTest.mouseClick(window.bench.run, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: window.bench.words.text() == CANCELLED)
        qtbot.waitUntil(lambda: window.store.running_counts == (5, 15, 10))


def test_trouble_of_the_measuring_reaches_the_pane(qtbot, window):
    script = ScriptedServices()
    script.measure_trouble = "The answer broke off."
    with bridged(window, script):
        started(qtbot, window, script)
        QTest.mouseClick(window.bench.run, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: window.bench.words.text() == "The answer broke off.")
