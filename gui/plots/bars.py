"""Paints rows of bars, one for each node, with a legend below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QHelpEvent, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from gui.plots.rows import BarRow, Part
from gui.theme import faded, sized_font

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QPaintEvent

    from gui.theme import Theme

_SIDE = 14.0
_LEGEND_HEIGHT = 20.0
_TALLEST_ROW, _LOWEST_ROW = 64.0, 30.0
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class BarsView(QWidget):
    """Shows rows; without any it says ``nothing``. ``thin`` names the thin bars in the legend."""

    def __init__(self, name: str, parts: tuple[Part, ...], thin: str, nothing: str, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._legend = parts
        self._thin = thin
        self._nothing = nothing
        self._rows: tuple[BarRow, ...] = ()
        self.hues: Mapping[str, int] = {}
        """Which hue each node has, by its id."""
        self.setObjectName(name)
        self.setAccessibleName(name.replace("_", " ").capitalize())

    @property
    def rows(self) -> tuple[BarRow, ...]:
        return self._rows

    def show_rows(self, rows: tuple[BarRow, ...]) -> None:
        """Show others; paints only when something changed."""
        if rows != self._rows:
            self._rows = rows
            self.setAccessibleDescription(". ".join(f"{row.name}: {row.words}, {row.mark_words}" for row in rows))
            self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self.update()

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            boxes = zip(self._rows, self._boxes(), strict=True)
            row = next((row for row, box in boxes if box.contains(event.pos())), None)
            if row is not None:
                QToolTip.showText(event.globalPos(), row.tooltip, self)
            return True
        return super().event(event)

    def _boxes(self) -> list[QRectF]:
        room = self.height() - _LEGEND_HEIGHT - 6
        height = min(max(room / max(len(self._rows), 1), _LOWEST_ROW), _TALLEST_ROW)
        width = self.width() - 2 * _SIDE
        return [QRectF(_SIDE, 2 + index * height, width, height) for index in range(len(self._rows))]

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._rows:
            painter.setFont(sized_font(12))
            painter.setPen(self._theme.dim)
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(QRectF(self.rect()).adjusted(16, 0, -16, 0), flags, self._nothing)
            return
        for index, (row, box) in enumerate(zip(self._rows, self._boxes(), strict=True)):
            if box.bottom() <= self.height() - _LEGEND_HEIGHT:
                hue = self._theme.hue(self.hues.get(row.node_id, index))
                self._paint_row(painter, row, box, hue)
        self._paint_legend(painter)

    def _paint_row(self, painter: QPainter, row: BarRow, box: QRectF, hue: QColor) -> None:
        theme = self._theme
        tall = box.height() >= 46
        words = QRectF(box.left(), box.top() + (3 if tall else 0), box.width(), 16)
        strong, small = sized_font(12, QFont.Weight.DemiBold), sized_font(11)
        painter.setFont(small)
        painter.setPen(theme.text)
        taken = QFontMetricsF(small).horizontalAdvance(row.words) + 12
        painter.drawText(words, _RIGHT, row.words)
        room = max(words.width() - taken, 0)
        name = QFontMetricsF(strong).elidedText(row.name, Qt.TextElideMode.ElideRight, room)
        painter.setFont(strong)
        painter.drawText(words, _LEFT, name)
        after = QFontMetricsF(strong).horizontalAdvance(name) + 8
        if after + QFontMetricsF(small).horizontalAdvance(row.beside) < room:
            painter.setFont(small)
            painter.setPen(theme.dim)
            painter.drawText(words.adjusted(after, 0, 0, 0), _LEFT, row.beside)
        bar = QRectF(box.left(), words.bottom() + 3, box.width(), 10 if tall else 6)
        clip = QPainterPath()
        clip.addRoundedRect(bar, bar.height() / 2, bar.height() / 2)
        painter.save()
        painter.setClipPath(clip)
        painter.fillRect(bar, theme.track)
        left = bar.left()
        for part, fraction in row.parts:
            width = max(fraction * bar.width(), 1.5) if fraction > 0 else 0.0
            self._fill(painter, QRectF(left, bar.top(), width, bar.height()), part, hue)
            left += width
        painter.restore()
        if row.mark is not None:
            thin = QRectF(bar.left(), bar.bottom() + 3, max(row.mark * bar.width(), 2.0), 3)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(faded(hue, 0.55))
            painter.drawRoundedRect(thin, 1.5, 1.5)
            if tall:
                painter.setFont(small)
                painter.setPen(theme.dim)
                painter.drawText(QRectF(box.left(), thin.bottom() + 1, box.width(), 14), _LEFT, row.mark_words)

    def _fill(self, painter: QPainter, box: QRectF, part: Part, hue: QColor) -> None:
        theme = self._theme
        if part is Part.WAIT:  # hatched: seen without colour too
            painter.fillRect(box, faded(hue, 0.16))
            painter.save()
            painter.setClipRect(box, Qt.ClipOperation.IntersectClip)
            painter.setPen(QPen(faded(hue, 0.5), 1.4))
            starts = range(int(box.left()) - 16, int(box.right()) + 1, 6)
            painter.drawLines([QLineF(x, box.bottom() + 1, x + box.height() + 2, box.top() - 1) for x in starts])
            painter.restore()
        else:
            painter.fillRect(box, {Part.HOP: theme.text, Part.CACHE: faded(hue, 0.5)}.get(part, hue))

    def _paint_legend(self, painter: QPainter) -> None:
        theme, hue = self._theme, self._theme.hue(0)
        font = sized_font(11)
        painter.setFont(font)
        x, top = _SIDE, self.height() - _LEGEND_HEIGHT
        for part in self._legend:
            painter.save()
            self._fill(painter, QRectF(x, top + 5, 10, 8), part, hue)
            painter.restore()
            x = self._name(painter, x + 14, top, part.value)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(faded(hue, 0.55))
        painter.drawRoundedRect(QRectF(x, top + 8, 14, 3), 1.5, 1.5)
        self._name(painter, x + 18, top, self._thin)
        painter.setPen(theme.dim)

    def _name(self, painter: QPainter, x: float, top: float, text: str) -> float:
        painter.setPen(self._theme.dim)
        painter.drawText(QRectF(x, top, 200, 18), _LEFT, text)
        return x + QFontMetricsF(painter.font()).horizontalAdvance(text) + 14
