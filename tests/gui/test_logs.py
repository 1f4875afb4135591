"""The logs of nodes as one, what a person looks for in them, and the report."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gui import pane_samples as samples
from gui.logs.lines import Level, entries, jobs_of, matching
from gui.logs.pane import NO_JOBS, NO_MATCH, NO_NODES, READING
from runtime.agent.job_logs import JobSeen, NodeLogs, RankLog
from runtime.cluster.job_logs import LogsOfNode
from tests.gui.scripted import ScriptedServices, bridged


def test_entries_of_all_nodes_are_in_order_of_time_and_what_cannot_be_read_comes_first():
    found = entries(samples.logs(), samples.NEWEST)
    assert found[0].text == "The logs of this node cannot be read: it does not answer"
    assert [entry.when for entry in found] == sorted(entry.when for entry in found)
    assert found[1].shown.startswith("22:59:02.118  Virtual A")
    assert len({entry.shown.index("engine.worker") for entry in found if "engine.worker" in entry.text}) == 1


def test_a_traceback_belongs_to_its_line_and_is_as_serious():
    failure = next(entry for entry in entries(samples.logs(), samples.NEWEST) if "this rank failed" in entry.text)
    assert failure.level is Level.ERROR
    assert failure.text.endswith("1.7 GB are free")


def test_words_are_looked_for_whatever_their_case_and_order():
    found = entries(samples.logs(), samples.NEWEST)
    assert len(matching(found, "HOP virtual lost")) == 2
    assert len(matching(found, "lost hop", "virtual-a")) == 1
    assert matching(found, "no such word") == ()


def test_ranks_are_named_where_a_node_has_several_of_the_job():
    ranks = (RankLog("b-rank1", "late\n"), RankLog("b-rank0", "early\n"), RankLog("a-rank0", "old\n"))
    found = entries([LogsOfNode("n", "Studio", NodeLogs(ranks))], "b")
    assert [entry.where for entry in found] == ["Studio rank 1", "Studio rank 0"]


def test_a_job_is_listed_once_with_the_last_that_any_node_wrote():
    read = [
        LogsOfNode("n", "Studio", NodeLogs((), (JobSeen("a", 5.0), JobSeen("b", 3.0)))),
        LogsOfNode("m", "mini", NodeLogs((), (JobSeen("b", 9.0),))),
    ]
    assert jobs_of(read) == (JobSeen("b", 9.0), JobSeen("a", 5.0))


@pytest.fixture
def pane(qtbot, demo_window):
    """The log pane of a window, where it is seen."""
    demo_window.show_pane("log")
    return demo_window.logs


def hint(pane):
    return pane._hint.words if pane._hint.isVisible() else None


def test_it_asks_when_it_is_seen_and_says_what_there_is_not(qtbot, demo_window):
    pane = demo_window.logs
    with qtbot.waitSignal(pane.logs_wanted) as wanted:
        demo_window.show_pane("log")
    assert wanted.args == [""]
    assert hint(pane) == READING
    pane.show_logs(())
    assert hint(pane) == NO_NODES
    pane.show_logs((LogsOfNode("n", "Studio"),))
    assert hint(pane) == NO_JOBS
    assert pane.copy.toolTip() == NO_JOBS


def test_the_filter_and_the_node_choose_lines(pane):
    pane.show_logs(samples.logs())
    assert "Virtual C" in pane.text.toPlainText()
    pane.node.setCurrentIndex(pane.node.findData("virtual-b"))
    pane.node.activated.emit(2)
    assert "Virtual C" not in pane.text.toPlainText()
    QTest.keyClicks(pane.words, "refused")
    assert pane.text.toPlainText().count("\n") == 0
    QTest.keyClicks(pane.words, " nowhere")
    assert hint(pane) == NO_MATCH


def test_another_job_is_asked_for(qtbot, pane):
    pane.show_logs(samples.logs())
    pane.job.setCurrentIndex(1)
    with qtbot.waitSignal(pane.logs_wanted) as wanted:
        pane.job.activated.emit(1)
    assert wanted.args == [samples.EARLIER]
    assert hint(pane) == READING


def test_what_is_added_is_followed_unless_the_person_reads_above(pane):
    rank = "\n".join(f"2026-11-29 22:59:{second:02},000 INFO x line" for second in range(50))

    def logs(text):
        return (LogsOfNode("n", "Studio", NodeLogs((RankLog("a-rank0", text),), (JobSeen("a", 1.0),))),)

    pane.show_logs(logs(rank))
    bar = pane.text.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    pane.show_logs(logs(f"{rank}\n2026-11-29 23:00:00,000 ERROR x more"))
    assert bar.value() == bar.maximum()
    bar.setValue(3)
    pane.show_logs(logs(f"{rank}\n2026-11-29 23:00:00,000 ERROR x more\n2026-11-29 23:00:01,000 INFO x and more"))
    assert bar.value() == 3
    pane.follow.click()
    pane.follow.click()
    assert bar.value() == bar.maximum()


def test_it_is_not_asked_again_while_nodes_are_slow(qtbot, pane):
    with qtbot.assertNotEmitted(pane.logs_wanted):
        pane._on_time()
    pane.show_logs(())
    with qtbot.waitSignal(pane.logs_wanted):
        pane._on_time()


def test_logs_and_report_come_over_the_bridge(qtbot, window):
    script = ScriptedServices()
    script.logs = samples.logs()
    with bridged(window, script):
        qtbot.waitUntil(lambda: len(window.editor.cards) == 3)
        window.show_pane("log")
        qtbot.waitUntil(lambda: "lost a hop" in window.logs.text.toPlainText())
        assert script.logs_asked[0] == (("Virtual A", "Virtual B", "Virtual C"), "")

        QTest.mouseClick(window.logs.copy, Qt.MouseButton.LeftButton)
        assert "Virtual A" in QGuiApplication.clipboard().text()
        QTest.mouseClick(window.logs.report, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: QGuiApplication.clipboard().text() == "the report")
        assert window.logs.report.text() == "Copied"
        qtbot.waitUntil(lambda: window.logs.report.text() == "Copy Report")

        script.report_trouble = "No node answered."
        QTest.mouseClick(window.logs.report, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: window.banner.words == "No node answered.")
        assert window.logs.report.isEnabled()
    QApplication.processEvents()
