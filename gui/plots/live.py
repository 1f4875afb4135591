"""The live pane: speed, the stages' times and the memory of a session, to be paused and exported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QActionGroup, QFont
from PySide6.QtWidgets import QFileDialog, QMenu, QStackedWidget

from gui.formatting import count_words, rate_words
from gui.plots.bars import BarsView
from gui.plots.history import History
from gui.plots.rows import Part, memory_rows, stage_rows
from gui.plots.series import KEPT_SECONDS, WINDOW_SECONDS
from gui.plots.speed import SpeedView
from gui.widgets.buttons import quiet_button
from gui.widgets.labels import ElidedLabel, label, set_ink
from gui.widgets.panel import Panel
from gui.widgets.segmented import Segmented

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gui.session import SessionState
    from gui.theme import Theme
    from runtime.cluster.messages import Statistics, Throughput

_TABS = {"speed": "Speed", "stages": "Stages", "memory": "Memory"}
NO_STAGES = "What each stage takes for a token appears here while the model answers."
NO_MEMORY = "What each node holds appears here while the model runs."


class LivePane(Panel):
    """What is measured of a session.

    Signals:
        trouble: An export could not be written: why.
    """

    trouble = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("Live", theme, parent)
        self.setObjectName("live_pane")
        self.setMinimumSize(300, 150)
        self.history = History()
        self._session: SessionState | None = None
        self._paused = False
        self._dialog: QFileDialog | None = None
        self.tabs = Segmented(_TABS, theme)
        self.tabs.setAccessibleName("What is shown live")
        self.tabs.show_choice("speed")
        self.tabs.chosen.connect(self.show_tab)
        self.speed = SpeedView(theme)
        self.stages = BarsView("stage_times", (Part.COMPUTE, Part.WAIT, Part.HOP), "predicted", NO_STAGES, theme)
        self.memory = BarsView("memory_of_nodes", (Part.WEIGHTS, Part.CACHE), "planned", NO_MEMORY, theme)
        self._views: dict[str, SpeedView | BarsView] = {
            "speed": self.speed,
            "stages": self.stages,
            "memory": self.memory,
        }
        self._stack = QStackedWidget()
        for view in self._views.values():
            self._stack.addWidget(view)
        self.in_flight = ElidedLabel("live_in_flight", 12, align=Qt.AlignmentFlag.AlignRight)
        self.now = label("live_now", 12, QFont.Weight.DemiBold)
        self.pause = quiet_button("Pause", "live_pause", "Hold the picture; samples are kept")
        self.pause.setCheckable(True)
        self.pause.toggled.connect(self._on_pause)
        self.more = quiet_button("⋯", "live_more", "How much is shown, and export")
        self.more.setAccessibleName("More of the live pane")
        self.more.setMenu(self._make_menu())
        self.title_row.setSpacing(6)
        self.title_row.insertWidget(1, self.tabs)
        self.title_row.addWidget(self.in_flight, 1)  # gives way first
        for widget in (self.now, self.pause, self.more):
            self.title_row.addWidget(widget)
        self.body.addWidget(self._stack, 1)
        self.speed.told.connect(self.now.setText)
        self.set_theme(theme)

    # From the window ----------------------------------------------------------------------------------------------

    def show_session(self, session: SessionState, *, running: bool) -> None:
        """The session changed."""
        if running and not (self._session is not None and self._session.held):
            self.history.clear()
        self._session = session if session.plan is not None else None
        if session.active:
            self.speed.load_chart_soon()
        self.speed.set_running(running=running)
        if not running:
            self.in_flight.setText("")
        self._refresh()

    def add(self, sample: Throughput) -> None:
        """The rates of now."""
        self.history.add_speed(sample)
        self.speed.add(sample)
        words = [count_words(sample.active_requests, "request")] if sample.active_requests else []
        if sample.prefill_tokens_per_second > 0:
            words.append(f"prefill {rate_words(sample.prefill_tokens_per_second)}")
        self.in_flight.setText(" · ".join(words))

    def add_counters(self, sample: Statistics) -> None:
        """The counters of now."""
        self.history.add_counters(sample)
        self._refresh()

    def load_chart(self) -> None:
        """Bring in the library of the chart now."""
        self.speed.load_chart()

    def show_tab(self, name: str) -> None:
        """Show speed, stages or memory."""
        self.tabs.show_choice(name)
        self._stack.setCurrentWidget(self._views[name])
        self._refresh()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        set_ink(self.in_flight, theme.dim)
        set_ink(self.now, theme.text)
        self.tabs.set_theme(theme)
        for view in self._views.values():
            view.set_theme(theme)

    # Export -------------------------------------------------------------------------------------------------------

    def table(self) -> str:
        """The last five minutes as CSV."""
        plan = self._session.plan if self._session is not None else None
        names = {rank.node_id: rank.node_name for stage in (plan.stages if plan else ()) for rank in stage.ranks}
        return self.history.csv(names)

    def export(self, path: Path) -> None:
        """Write a picture or a table, by the ending of the name; ``trouble`` says what went wrong."""
        if path.suffix.lower() == ".png":
            if not self.grab().save(str(path)):
                self.trouble.emit(f"{path} cannot be written.")
            return
        try:
            path.write_text(self.table(), encoding="utf-8")
        except OSError as error:
            self.trouble.emit(f"{path} cannot be written ({error.strerror}).")

    def open_export(self, ending: str) -> None:
        """Ask where to."""
        if self._dialog is not None:
            return
        dialog = QFileDialog(self, f"Export as {ending.upper()}")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(ending)
        dialog.selectFile(f"Pomona live.{ending}")
        dialog.fileSelected.connect(self._on_file)
        dialog.finished.connect(self._on_dialog_closed)
        self._dialog = dialog
        dialog.open()

    def _make_menu(self) -> QMenu:
        menu = QMenu(self)
        spans = QActionGroup(menu)
        for text, seconds in (("Last Minute", WINDOW_SECONDS), ("Last 5 Minutes", KEPT_SECONDS)):
            action = menu.addAction(text)
            action.setCheckable(True)
            action.setChecked(seconds == WINDOW_SECONDS)
            action.setData(seconds)
            spans.addAction(action)
        spans.triggered.connect(self._on_span)
        menu.addSeparator()
        menu.addAction("Export Table (CSV)…").triggered.connect(self._on_csv)
        menu.addAction("Export Picture (PNG)…").triggered.connect(self._on_png)
        self._spans = spans
        return menu

    def _refresh(self) -> None:
        if self._paused:
            return
        plan = self._session.plan if self._session is not None else None
        if plan is None or self._session is None:
            self.stages.show_rows(())
            self.memory.show_rows(())
            return
        if self._stack.currentWidget() is self.stages:
            self.stages.show_rows(stage_rows(plan, self.history.rates, self._session.run) if self.history.rates else ())
        elif self._stack.currentWidget() is self.memory:
            rows = memory_rows(plan, self._session.held, self.history.kv_bytes) if self._session.held else ()
            self.memory.show_rows(rows)

    @Slot(bool)
    def _on_pause(self, paused: bool) -> None:
        self._paused = paused
        self.pause.setText("Go On" if paused else "Pause")
        self.speed.set_paused(paused=paused)
        self._refresh()

    def _on_span(self) -> None:
        checked = self._spans.checkedAction()
        assert checked is not None  # one of a group always is
        self.speed.set_span(float(checked.data()))

    def _on_csv(self) -> None:
        self.open_export("csv")

    def _on_png(self) -> None:
        self.open_export("png")

    @Slot(str)
    def _on_file(self, path: str) -> None:
        self.export(Path(path))

    @Slot()
    def _on_dialog_closed(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None
