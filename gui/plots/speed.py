"""The live plot of tokens per second, and words where there is none. Its library comes with the first session."""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gui.formatting import rate_words, seconds_words
from gui.plots.series import WINDOW_SECONDS, Series, nice_ceiling
from gui.widgets.hint import Hint

if TYPE_CHECKING:
    from gui.plots.chart import Chart
    from gui.theme import Theme
    from runtime.cluster.messages import Throughput

NOTHING_RUNS = "Tokens per second appear here while the model answers."
NOTHING_YET = "Ask something: the model's speed appears here."
NOTHING_NOW = "No tokens in the last {}."
_IDLE_TICK_MS = 1000
_CHART_DELAY_MS = 50
"""So that a person sees first that their click did something."""


class SpeedView(QWidget):
    """Decode speed over the last minutes.

    Signals:
        told: What the speed is, or was under the mouse; empty when there is none.
    """

    told = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("speed_view")
        self._theme = theme
        self.series = Series()
        self.now_words = ""
        self._chart: Chart | None = None
        self._running = False
        self._paused = False
        self._paused_at = 0.0
        self._span = WINDOW_SECONDS
        self._heard_at = 0.0
        self._drawn_at = -inf
        """The time that the curve on the screen ends with, on the samples' clock."""
        self._hovered: float | None = None
        self._empty = Hint("speed", theme)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_CHART_DELAY_MS)
        self._soon.timeout.connect(self.load_chart)
        self._box = QVBoxLayout(self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.addWidget(self._empty, 1)
        self._clock = QTimer(self)
        self._clock.setInterval(_IDLE_TICK_MS)
        self._clock.timeout.connect(self._on_tick)
        self.refresh()

    @property
    def words(self) -> str:
        """What is said instead of a curve; empty while there is one."""
        return self._empty.words if self._empty.isVisibleTo(self) else ""

    @property
    def has_chart(self) -> bool:
        return self._chart is not None

    def load_chart_soon(self) -> None:
        """A session begins, and there will be something to draw; importing the library takes a fifth of a second."""
        if self._chart is None and not self._soon.isActive():
            self._soon.start()

    def load_chart(self) -> None:
        """Import pyqtgraph and put its plot in the pane."""
        if self._chart is None:
            from gui.plots.chart import Chart

            self._chart = Chart(self._theme)
            self._chart.hovered.connect(self._on_hovered)
            self._chart.show_span(self._span)
            self._box.addWidget(self._chart, 1)
            self.refresh()

    def set_running(self, *, running: bool) -> None:
        """Whether a session runs. A new one begins with an empty plot; an old plot stays to be read."""
        if running and not self._running:
            self.series.clear()
            self._drawn_at = -inf
        self._running = running
        if not running:
            self._clock.stop()
            self.now_words = ""
        self.refresh()

    def set_paused(self, *, paused: bool) -> None:
        """Hold the picture; samples are kept all the same."""
        self._paused_at = self._time_now()
        self._paused = paused
        self.refresh()

    def set_span(self, seconds: float) -> None:
        """Show the last minute, or five."""
        self._span = seconds
        if self._chart is not None:
            self._chart.show_span(seconds)
        self.refresh()

    def add(self, sample: Throughput) -> None:
        """Take the next sample."""
        self.series.add(sample.time_seconds, sample.decode_tokens_per_second)
        self._heard_at = monotonic()
        newest = self.series.newest
        assert newest is not None
        self.now_words = rate_words(newest[1]) if sample.active_requests or newest[1] > 0 else "idle"
        self._clock.start()
        self.refresh(moved_pixels=1.0)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self._empty.set_theme(theme)
        if self._chart is not None:
            self._chart.set_theme(theme)

    def _on_tick(self) -> None:
        """Let the curve slide on while no sample comes, until it is gone."""
        self.refresh()
        if self.series.peak(self._time_now(), self._span) == 0:
            self._clock.stop()

    def _on_hovered(self, age: float | None) -> None:
        self._hovered = age
        self._tell()

    def _time_now(self) -> float:
        if self._paused:
            return self._paused_at
        newest = self.series.newest
        if newest is None:
            return 0.0
        return newest[0] + (monotonic() - self._heard_at if self._running else 0.0)

    def refresh(self, moved_pixels: float = 0.0) -> None:
        """Draw what is known now, if the curve has moved by so many pixels: of a sample less than that nobody sees."""
        now = self._time_now()
        peak = self.series.peak(now, self._span)
        drawn = self._chart is not None and peak > 0
        if not self._running and not len(self.series):
            self._empty.say(NOTHING_RUNS)
        else:
            span = "minute" if self._span == WINDOW_SECONDS else "five minutes"
            self._empty.say(NOTHING_NOW.format(span) if len(self.series) else NOTHING_YET)
        self._empty.setVisible(not drawn)
        if self._chart is not None:
            self._chart.setVisible(drawn)
            moved = abs(now - self._drawn_at) / self._span * self._chart.width() >= moved_pixels
            if drawn and moved and self.isVisibleTo(self.window()):
                self._drawn_at = now
                self._chart.draw(*self.series.points(now, self._span), nice_ceiling(peak))
        self._tell()

    def _tell(self) -> None:
        words = self.now_words if len(self.series) else ""
        if self._hovered is not None and (value := self.series.value_at(self._time_now() + self._hovered)) is not None:
            words = f"{rate_words(value)}, {seconds_words(-self._hovered)} ago"
        self.setAccessibleDescription(words or self._empty.words)
        self.told.emit(words)
