"""The log pane: what a job wrote on every node, filtered and followed, and the report for someone who can help."""

from __future__ import annotations

from time import localtime, strftime
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QStackedWidget

from gui.logs.lines import entries, jobs_of, matching
from gui.logs.text import LogText
from gui.theme import sized_font
from gui.widgets.buttons import quiet_button, say_done
from gui.widgets.hint import Hint
from gui.widgets.panel import Panel
from gui.widgets.pop_up import PopUp

if TYPE_CHECKING:
    from PySide6.QtGui import QHideEvent, QShowEvent

    from gui.theme import Theme
    from runtime.cluster.job_logs import LogsOfNode

_FOLLOW_MS = 2000
_COPY_TIP = "Copy what is shown, or what is selected, with its names"
_REPORT_TIP = "Copy the newest logs of all nodes, with names and addresses replaced"
NO_NODES = "No node is in reach, so there is nothing to read."
NO_JOBS = "What the workers write appears here once a model was started."
NO_MATCH = "Nothing of this job matches."
READING = "Reading the logs of the nodes…"


class LogPane(Panel):
    """Asks for logs while it is seen.

    Signals:
        logs_wanted: The job whose logs are wanted; empty is each node's newest.
        report_wanted: The report is wanted; :meth:`show_report` brings it.
        trouble: Why there is no report.
    """

    logs_wanted = Signal(str)
    report_wanted = Signal()
    trouble = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__("Log", theme)
        self.setObjectName("log_pane")
        self._read: tuple[LogsOfNode, ...] | None = None
        self._read_job = ""
        """Which job that is of; empty is each node's newest."""
        self._asked_job: str | None = None
        """Which one is being read."""
        self.copy = quiet_button("Copy", "log_copy", _COPY_TIP)
        self.copy.clicked.connect(self._on_copy)
        self.report = quiet_button("Copy Report", "log_report", _REPORT_TIP)
        self.report.clicked.connect(self._on_report)
        self.title_row.addWidget(self.copy)
        self.title_row.addWidget(self.report)
        self.node = self._choice("log_node", "Node")
        self.node.activated.connect(self._show)
        self.job = self._choice("log_job", "Job")
        self.job.activated.connect(self._on_job)
        self.words = QLineEdit()
        self.words.setObjectName("log_words")
        self.words.setAccessibleName("Show only lines with these words")
        self.words.setPlaceholderText("Filter")
        self.words.setClearButtonEnabled(True)
        self.words.setFont(sized_font(12))
        self.words.textChanged.connect(self._show)
        self.follow = quiet_button("Follow", "log_follow", "Read on every two seconds and stay at the end")
        self.follow.setCheckable(True)
        self.follow.setChecked(True)
        self.follow.toggled.connect(self._on_follow)
        row = QHBoxLayout()
        row.setContentsMargins(12, 0, 12, 0)
        row.setSpacing(6)
        row.addWidget(self.node)
        row.addWidget(self.job)
        row.addWidget(self.words, 1)
        row.addWidget(self.follow)
        self.body.addLayout(row)
        self.text = LogText(theme)
        self._hint = Hint("log", theme)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.text)
        self._stack.addWidget(self._hint)
        self.body.addWidget(self._stack, 1)
        self.setFocusProxy(self.words)
        self._timer = QTimer(self)
        self._timer.setInterval(_FOLLOW_MS)
        self._timer.timeout.connect(self._on_time)
        self._fill()
        self._show()
        self.set_theme(theme)

    # From the window ----------------------------------------------------------------------------------------------

    def show_logs(self, read: tuple[LogsOfNode, ...]) -> None:
        """What the nodes have written by now."""
        asked, self._asked_job = self._asked_job or "", None
        if (read, asked) != (self._read, self._read_job):
            self._read, self._read_job = read, asked
            self._fill()
            self._show()
        if asked != self._job:
            self._ask()

    def show_report(self, text: str, trouble: str) -> None:
        """The report, or why there is none."""
        self.report.setEnabled(True)
        self.report.setText("Copy Report")
        self.report.setToolTip(_REPORT_TIP)
        if trouble:
            self.trouble.emit(trouble)
        else:
            QGuiApplication.clipboard().setText(text)
            say_done(self.report)

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        for part in (self.node, self.job, self.text, self._hint):
            part.set_theme(theme)

    @property
    def _job(self) -> str:
        return self.job.currentData() or ""

    # Inside -------------------------------------------------------------------------------------------------------

    def _choice(self, name: str, what: str) -> PopUp:
        choice = PopUp(self.theme)
        choice.setObjectName(name)
        choice.setAccessibleName(what)
        choice.setFont(sized_font(12))
        choice.setSizeAdjustPolicy(PopUp.SizeAdjustPolicy.AdjustToContents)
        return choice

    def _fill(self) -> None:
        """Offer the nodes and jobs that there are; what was chosen stays chosen."""
        read = self._read or ()
        jobs = jobs_of(read)
        for choice, whole, offered in (
            (self.node, "All Nodes", [(one.name, one.node_id) for one in read]),
            (self.job, "Newest Job", [(_job_words(one.written_seconds), one.job) for one in jobs[1:]]),
        ):
            chosen = choice.currentData()
            choice.blockSignals(True)
            choice.clear()
            choice.addItem(whole, "")
            for words, data in offered:
                choice.addItem(words, data)
            choice.setCurrentIndex(max(choice.findData(chosen), 0))
            choice.blockSignals(False)
            choice.setMaximumWidth(170)

    @Slot()
    def _show(self) -> None:
        reading = self._read is None or self._read_job != self._job
        read = () if reading else self._read or ()
        jobs = jobs_of(read)
        written = entries(read, self._job or (jobs[0].job if jobs else ""))
        shown = matching(written, self.words.text(), self.node.currentData() or "")
        self.text.show_entries(shown, follow=self.follow.isChecked())
        if reading:
            self._hint.say(READING)
        elif not read:
            self._hint.say(NO_NODES)
        else:
            self._hint.say(NO_MATCH if written else NO_JOBS)
        self._stack.setCurrentWidget(self.text if shown else self._hint)
        self.copy.setEnabled(bool(shown))
        self.copy.setToolTip(_COPY_TIP if shown else self._hint.words)

    @Slot()
    def _ask(self) -> None:
        """Once at a time: a node that answers slowly is not asked again meanwhile."""
        if self.isVisible() and self._asked_job is None:
            self._asked_job = self._job
            self.logs_wanted.emit(self._job)

    @Slot()
    def _on_time(self) -> None:
        if self.follow.isChecked():
            self._ask()

    @Slot(bool)
    def _on_follow(self, on: bool) -> None:
        if on:
            self.text.to_end()
            self._ask()

    @Slot()
    def _on_job(self) -> None:
        self._show()
        self._ask()

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.wanted)
        say_done(self.copy)

    @Slot()
    def _on_report(self) -> None:
        self.report.setEnabled(False)
        self.report.setText("Reading…")
        self.report.setToolTip("The nodes are asked for their logs")
        self.report_wanted.emit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()
        self._ask()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()


def _job_words(written_seconds: float) -> str:
    return strftime("%d %b, %H:%M", localtime(written_seconds))
