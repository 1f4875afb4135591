"""The curve of tokens per second. pyqtgraph has no types and takes 0.4 s of CPU to import, so it is here alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, QPointF, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gui.theme import faded, sized_font

if TYPE_CHECKING:
    from gui.theme import Theme

_TICKS = {
    60.0: [(-55, "1 min ago"), (-30, "30 s"), (-2, "now")],
    300.0: [(-277, "5 min ago"), (-150, "2½ min"), (-9, "now")],
}


class Chart(QWidget):
    """One filled curve over the last minutes.

    Signals:
        hovered: The age under the mouse in seconds (zero or below), or None when it has left.
    """

    hovered = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        import pyqtgraph

        self._pyqtgraph: Any = pyqtgraph
        pyqtgraph.setConfigOptions(antialias=True)
        self._plot: Any = pyqtgraph.PlotWidget()
        self._plot.setObjectName("speed_plot")
        self._plot.setAccessibleName("Tokens per second over the last minutes")
        self._plot.setFrameShape(self._plot.Shape.NoFrame)
        self._plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._plot.setMenuEnabled(False)
        self._plot.setMouseEnabled(x=False, y=False)
        self._plot.hideButtons()
        self._plot.getPlotItem().setContentsMargins(0, 8, 0, 0)
        # The line covers the area's edge, so it alone is antialiased: for the area that would cost more than all else.
        self._area: Any = pyqtgraph.PlotCurveItem(antialias=False, fillLevel=0, pen=pyqtgraph.mkPen(None))
        self._line: Any = pyqtgraph.PlotCurveItem(antialias=True, skipFiniteCheck=True)
        self._line.setSegmentedLineMode("on")  # looks the same, and a stroke around the whole path takes twice as long
        for curve in (self._area, self._line):
            self._plot.addItem(curve)
        self._marks: list[Any] = [pyqtgraph.InfiniteLine(angle=0) for _ in range(3)]
        for mark in self._marks:
            mark.setZValue(-10)
            self._plot.addItem(mark, ignoreBounds=True)
        self._cross: Any = pyqtgraph.InfiniteLine(angle=90)
        self._cross.hide()
        self._plot.addItem(self._cross, ignoreBounds=True)
        for side in ("left", "bottom"):
            axis = self._plot.getAxis(side)
            axis.setStyle(
                tickFont=sized_font(11), tickLength=0, tickTextOffset=6, tickAlpha=0, hideOverlappingLabels=False
            )
            axis.setPen(pyqtgraph.mkPen(None))
            axis.setTickPen(pyqtgraph.mkPen(None))
        self._plot.getAxis("left").setWidth(38)
        self._plot.getAxis("bottom").setHeight(22)
        self._plot.viewport().setMouseTracking(True)
        self._plot.viewport().installEventFilter(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 0, 14, 4)
        layout.addWidget(self._plot)
        self.show_span(60.0)
        self.set_theme(theme)

    def show_span(self, seconds: float) -> None:
        """How much of the past is shown: one minute or five."""
        self._plot.setXRange(-seconds, 0, padding=0)
        self._plot.getAxis("bottom").setTicks([_TICKS[seconds]])

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._plot.setBackground(theme.surface)
        self._line.setPen(self._pyqtgraph.mkPen(theme.accent, width=1.5))
        self._area.setBrush(faded(theme.accent, 0.20))
        self._cross.setPen(self._pyqtgraph.mkPen(theme.dim, width=1))
        for mark in self._marks:
            mark.setPen(self._pyqtgraph.mkPen(theme.line, width=1))
        for side in ("left", "bottom"):
            self._plot.getAxis(side).setTextPen(theme.dim)

    def draw(self, ages: list[float], values: list[float], top: float) -> None:
        """Draw values over ages, with the axis up to ``top``."""
        for curve in (self._area, self._line):
            curve.setData(ages, values)
        self._plot.setYRange(0, top, padding=0)
        levels = [0.0, top / 2, top]
        for mark, level in zip(self._marks, levels, strict=True):
            mark.setValue(level)
        self._plot.getAxis("left").setTicks([[(level, f"{level:g}") for level in levels]])

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.MouseMove and isinstance(event, QMouseEvent):
            self._hover(event.position())
        elif event.type() is QEvent.Type.Leave:
            self._cross.hide()
            self.hovered.emit(None)
        return False

    def _hover(self, position: QPointF) -> None:
        box = self._plot.getPlotItem().getViewBox()
        age = min(box.mapSceneToView(self._plot.mapToScene(position.toPoint())).x(), 0.0)
        inside = age >= box.viewRange()[0][0]
        self._cross.setVisible(inside)
        self._cross.setValue(age)
        self.hovered.emit(age if inside else None)
