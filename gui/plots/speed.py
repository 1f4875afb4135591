"""The live plot of tokens per second.

pyqtgraph takes 0.4 s of CPU to import, so the pane shows a placeholder until the window is up.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QRectF, Qt, QTimer
from PySide6.QtGui import QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gui.formatting import rate_words
from gui.icons import pixmap
from gui.plots.series import WINDOW_SECONDS, Series, nice_ceiling
from gui.theme import faded, sized_font
from gui.widgets.labels import label, set_ink
from gui.widgets.panel import Panel

if TYPE_CHECKING:
    from gui.theme import Theme
    from runtime.cluster.messages import Throughput

NOTHING_RUNS = "Tokens per second appear here while the model answers."
NOTHING_YET = "Ask something: the model's speed appears here."
NOTHING_NOW = "No tokens in the last minute."
_IDLE_TICK_MS = 1000


class SpeedPane(Panel):
    """Decode speed over the last minute, the number of now, and in words when there is none."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("Speed", theme, parent)
        self.setObjectName("speed_pane")
        self.setMinimumSize(240, 150)
        self.series = Series()
        self._chart: _Chart | None = None
        self._running = False
        self._heard_at = 0.0
        self._prefill = label("speed_prefill", 12)
        self._now = label("speed_now", 12, QFont.Weight.DemiBold)
        self.title_row.addWidget(self._prefill)
        self.title_row.addWidget(self._now)
        self._empty = _Empty(theme)
        self.body.addWidget(self._empty, 1)
        self._clock = QTimer(self)
        self._clock.setInterval(_IDLE_TICK_MS)
        self._clock.timeout.connect(self._on_tick)
        self.set_theme(theme)
        self._show()

    @property
    def words(self) -> str:
        """What the pane says instead of a curve; empty while there is one."""
        return self._empty.words if self._empty.isVisibleTo(self) else ""

    @property
    def has_chart(self) -> bool:
        return self._chart is not None

    def load_chart(self) -> None:
        """Import pyqtgraph and put its plot in the pane. Called once the window is up."""
        if self._chart is None:
            self._chart = _Chart(self.theme)
            self.body.addWidget(self._chart, 1)
            self._show()

    def set_running(self, *, running: bool) -> None:
        """Whether a session runs. A new one begins with an empty plot; an old plot stays to be read."""
        if running and not self._running:
            self.series.clear()
        self._running = running
        if not running:
            self._clock.stop()
            self._now.setText("")
            self._prefill.setText("")
        self._show()

    def add(self, sample: Throughput) -> None:
        """Take the next sample."""
        self.series.add(sample.time_seconds, sample.decode_tokens_per_second)
        self._heard_at = monotonic()
        prefill = sample.prefill_tokens_per_second
        self._prefill.setText(f"prefill {rate_words(prefill)}" if prefill > 0 else "")
        newest = self.series.newest
        assert newest is not None
        self._now.setText(rate_words(newest[1]) if sample.active_requests or newest[1] > 0 else "idle")
        self._clock.start()
        self._show()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        set_ink(self._prefill, theme.dim)
        set_ink(self._now, theme.text)
        self._empty.set_theme(theme)
        if self._chart is not None:
            self._chart.set_theme(theme)

    def _on_tick(self) -> None:
        """Let the curve slide on while no sample comes, until it is gone."""
        self._show()
        if self.series.peak(self._time_now()) == 0:
            self._clock.stop()

    def _time_now(self) -> float:
        newest = self.series.newest
        if newest is None:
            return 0.0
        return newest[0] + (monotonic() - self._heard_at if self._running else 0.0)

    def _show(self) -> None:
        now = self._time_now()
        peak = self.series.peak(now)
        drawn = self._chart is not None and peak > 0
        if not self._running and not len(self.series):
            self._empty.say(NOTHING_RUNS)
        else:
            self._empty.say(NOTHING_NOW if len(self.series) else NOTHING_YET)
        self._empty.setVisible(not drawn)
        if self._chart is not None:
            self._chart.setVisible(drawn)
            if drawn:
                self._chart.draw(*self.series.points(now), nice_ceiling(peak))
        if not len(self.series):
            self._now.setText("")
            self._prefill.setText("")
        self.setAccessibleDescription(self._now.text() or self._empty.words)


class _Empty(QWidget):
    """An icon and a sentence in the middle."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.words = ""

    def say(self, words: str) -> None:
        self.words = words
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        middle = self.rect().center()
        picture = pixmap("speed", self._theme.faint, 28, self.devicePixelRatioF())
        painter.drawPixmap(middle.x() - 14, middle.y() - 36, picture)
        painter.setFont(sized_font(12))
        painter.setPen(self._theme.dim)
        box = QRectF(16, middle.y(), self.width() - 32, 40)
        flags = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
        painter.drawText(box, flags, self.words)


class _Chart(QWidget):
    """The curve itself. pyqtgraph has no types, so this class keeps it to itself."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        import pyqtgraph

        self._pyqtgraph: Any = pyqtgraph
        pyqtgraph.setConfigOptions(antialias=True)
        self._plot: Any = pyqtgraph.PlotWidget()
        self._plot.setObjectName("speed_plot")
        self._plot.setAccessibleName("Tokens per second over the last minute")
        self._plot.setFrameShape(self._plot.Shape.NoFrame)
        self._plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._plot.setMenuEnabled(False)
        self._plot.setMouseEnabled(x=False, y=False)
        self._plot.hideButtons()
        self._plot.setXRange(-WINDOW_SECONDS, 0, padding=0)
        self._plot.getPlotItem().setContentsMargins(0, 8, 0, 0)
        self._curve: Any = self._plot.plot()
        self._marks: list[Any] = [pyqtgraph.InfiniteLine(angle=0) for _ in range(3)]
        for mark in self._marks:
            mark.setZValue(-10)
            self._plot.addItem(mark, ignoreBounds=True)
        for side in ("left", "bottom"):
            axis = self._plot.getAxis(side)
            axis.setStyle(
                tickFont=sized_font(11), tickLength=0, tickTextOffset=6, tickAlpha=0, hideOverlappingLabels=False
            )
            axis.setPen(pyqtgraph.mkPen(None))
            axis.setTickPen(pyqtgraph.mkPen(None))
        self._plot.getAxis("left").setWidth(38)
        self._plot.getAxis("bottom").setHeight(22)
        self._plot.getAxis("bottom").setTicks([[(-55, "1 min ago"), (-30, "30 s"), (-2, "now")]])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 0, 14, 4)
        layout.addWidget(self._plot)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._plot.setBackground(theme.surface)
        self._curve.setPen(self._pyqtgraph.mkPen(theme.accent, width=1.5))
        self._curve.setFillLevel(0)
        self._curve.setBrush(faded(theme.accent, 0.20))
        for mark in self._marks:
            mark.setPen(self._pyqtgraph.mkPen(theme.line, width=1))
        for side in ("left", "bottom"):
            self._plot.getAxis(side).setTextPen(theme.dim)

    def draw(self, ages: list[float], values: list[float], top: float) -> None:
        """Draw values over ages, with the axis up to ``top``."""
        self._curve.setData(ages, values)
        self._plot.setYRange(0, top, padding=0)
        levels = [0.0, top / 2, top]
        for mark, level in zip(self._marks, levels, strict=True):
            mark.setValue(level)
        self._plot.getAxis("left").setTicks([[(level, f"{level:g}") for level in levels]])
