"""Paints rows of bars, one for each node, with a legend below.

Ten times a second other figures come, so only what changes is painted again: the bars, and the words on the right.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QHelpEvent, QPainter, QPainterPath, QPen, QPixmap, QRegion
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
_HATCH_STEP = 6


class _Place(NamedTuple):
    """Where the parts of a row lie."""

    line: QRectF
    """Name and words."""
    bar: QRectF
    thin: QRectF
    """The whole length of the thin bar."""
    below: QRectF | None
    """What the thin bar means, where there is room for it."""


class _Line(NamedTuple):
    """What of a row's first line has room, and where it lies on it."""

    name: str
    beside: str
    beside_left: float
    head_right: float
    """Where name and ``beside`` end."""
    words_left: float


class BarsView(QWidget):
    """Shows rows; without any it says ``nothing``. ``thin`` names the thin bars in the legend."""

    def __init__(self, name: str, parts: tuple[Part, ...], thin: str, nothing: str, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._legend = parts
        self._thin = thin
        self._nothing = nothing
        self._rows: tuple[BarRow, ...] = ()
        self._tiles: dict[tuple[int, float, float], QPixmap] = {}
        """Hatches that were painted, by hue, height and the screen's pixels to a point."""
        self.hues: Mapping[str, int] = {}
        """Which hue each node has, by its id."""
        self.setObjectName(name)
        self.setAccessibleName(name.replace("_", " ").capitalize())

    @property
    def rows(self) -> tuple[BarRow, ...]:
        return self._rows

    def show_rows(self, rows: tuple[BarRow, ...]) -> None:
        """Show others; paints only what changed."""
        if rows == self._rows:
            return
        before, self._rows = self._rows, rows
        self.setAccessibleDescription(". ".join(f"{row.name}: {row.words}, {row.mark_words}" for row in rows))
        if [_kept(row) for row in before] != [_kept(row) for row in rows]:
            self.update()
            return
        for old, new, box in zip(before, rows, self._boxes(), strict=True):
            if old == new:
                continue
            place, lines = _place(box), (_line(old, box.width()), _line(new, box.width()))
            left = place.line.left() + min(line.words_left for line in lines)
            if lines[0][:4] != lines[1][:4]:
                left = place.line.left()
            self.update(place.line.adjusted(left - place.line.left() - 2, 0, 2, 0).toAlignedRect())
            self.update(place.bar.united(place.thin).toAlignedRect())

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self._tiles.clear()
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

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._rows:
            painter.setFont(sized_font(12))
            painter.setPen(self._theme.dim)
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(QRectF(self.rect()).adjusted(16, 0, -16, 0), flags, self._nothing)
            return
        exposed = event.region()
        for index, (row, box) in enumerate(zip(self._rows, self._boxes(), strict=True)):
            if box.bottom() <= self.height() - _LEGEND_HEIGHT:
                hue = self._theme.hue(self.hues.get(row.node_id, index))
                self._paint_row(painter, row, box, hue, exposed)
        if exposed.intersects(self.rect().adjusted(0, self.height() - round(_LEGEND_HEIGHT), 0, 0)):
            self._paint_legend(painter)

    def _paint_row(self, painter: QPainter, row: BarRow, box: QRectF, hue: QColor, exposed: QRegion) -> None:
        theme, place = self._theme, _place(box)
        if exposed.intersects(place.line.toAlignedRect()):
            self._paint_line(painter, row, place.line, exposed)
        bar = place.bar
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
            thin = QRectF(place.thin)
            thin.setWidth(max(row.mark * bar.width(), 2.0))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(faded(hue, 0.55))
            painter.drawRoundedRect(thin, 1.5, 1.5)
            if place.below is not None and exposed.intersects(place.below.toAlignedRect()):
                painter.setFont(sized_font(11))
                painter.setPen(theme.dim)
                painter.drawText(place.below, _LEFT, row.mark_words)

    def _paint_line(self, painter: QPainter, row: BarRow, box: QRectF, exposed: QRegion) -> None:
        theme, line = self._theme, _line(row, box.width())
        painter.setFont(sized_font(11))
        painter.setPen(theme.text)
        painter.drawText(box, _RIGHT, row.words)
        head = QRectF(box.left(), box.top(), line.head_right, box.height())
        if not exposed.intersects(head.toAlignedRect()):
            return
        if line.beside:
            painter.setPen(theme.dim)
            painter.drawText(box.adjusted(line.beside_left, 0, 0, 0), _LEFT, line.beside)
        painter.setFont(sized_font(12, QFont.Weight.DemiBold))
        painter.setPen(theme.text)
        painter.drawText(box, _LEFT, line.name)

    def _fill(self, painter: QPainter, box: QRectF, part: Part, hue: QColor) -> None:
        theme = self._theme
        if part is Part.WAIT:  # hatched: seen without colour too
            kind = hue.rgba(), box.height(), self.devicePixelRatioF()
            if kind not in self._tiles:
                self._tiles[kind] = _hatch(hue, *kind[1:])
            tile = self._tiles[kind]
            painter.drawTiledPixmap(box, tile, QPointF(box.left() % _HATCH_STEP, 0))
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


def _kept(row: BarRow) -> tuple[object, ...]:
    """What of a row other figures do not change."""
    return row.node_id, row.name, row.beside, row.mark_words, row.mark is None


def _place(box: QRectF) -> _Place:
    tall = box.height() >= 46
    line = QRectF(box.left(), box.top() + (3 if tall else 0), box.width(), 16)
    bar = QRectF(box.left(), line.bottom() + 3, box.width(), 10 if tall else 6)
    thin = QRectF(bar.left(), bar.bottom() + 3, bar.width(), 3)
    return _Place(line, bar, thin, QRectF(box.left(), thin.bottom() + 1, box.width(), 14) if tall else None)


def _line(row: BarRow, width: float) -> _Line:
    words_left = width - _advance(row.words, 11, QFont.Weight.Normal)
    room = max(words_left - 12, 0)
    name = row.name
    if _advance(name, 12, QFont.Weight.DemiBold) > room:
        metrics = QFontMetricsF(sized_font(12, QFont.Weight.DemiBold))
        name = metrics.elidedText(name, Qt.TextElideMode.ElideRight, room)
    name_right = _advance(name, 12, QFont.Weight.DemiBold)
    beside_right = name_right + 8 + _advance(row.beside, 11, QFont.Weight.Normal)
    if beside_right < room:
        return _Line(name, row.beside, name_right + 8, beside_right, words_left)
    return _Line(name, "", name_right, name_right, words_left)


@lru_cache(maxsize=512)
def _advance(text: str, pixels: int, weight: QFont.Weight) -> float:
    return QFontMetricsF(sized_font(pixels, weight)).horizontalAdvance(text)


def _hatch(hue: QColor, height: float, ratio: float) -> QPixmap:
    """One step of slanted lines over a fainter ground, to be set side by side."""
    tile = QPixmap(round(_HATCH_STEP * ratio), round(height * ratio))
    tile.setDevicePixelRatio(ratio)
    tile.fill(Qt.GlobalColor.transparent)
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(QRectF(0, 0, _HATCH_STEP, height), faded(hue, 0.16))
    painter.setPen(QPen(faded(hue, 0.5), 1.4))
    starts = range(-4 * _HATCH_STEP, 2 * _HATCH_STEP, _HATCH_STEP)
    painter.drawLines([QLineF(x, height + 1, x + height + 2, -1) for x in starts])
    painter.end()
    return tile
