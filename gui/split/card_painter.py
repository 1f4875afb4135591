"""Paints one node's card, from top to bottom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen

from gui.split.card import CardView, Glyph, Tone
from gui.theme import faded, sized_font

if TYPE_CHECKING:
    from gui.theme import Theme

_RADIUS = 10.0
_PADDING = 14.0
_ROOMY = 190.0
"""From this width on a card has room for whole sentences."""
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class CardPainter:
    """One pass over a card, from top to bottom."""

    def __init__(
        self, painter: QPainter, rect: QRectF, view: CardView, hue: QColor, theme: Theme, *, focused: bool = False
    ) -> None:
        self.focused = focused
        self.painter, self.rect, self.view, self.theme = painter, rect, view, theme
        self.hue = faded(hue, 0.45) if view.faded else hue
        self.roomy = rect.width() >= _ROOMY
        self.low = rect.height() < 120
        padding = _PADDING if rect.width() >= 120 else 9.0
        self.left, self.width = rect.left() + padding, rect.width() - 2 * padding

    def paint(self) -> None:
        rows = (10.0, 27.0, 43.0, 69.0, 77.0) if self.low else (12.0, 32.0, 52.0, 90.0, 102.0)
        self._frame()
        self._name(rows[0])
        self._text(self.view.chip, self.left, rows[1], self.width, sized_font(11), self.theme.dim)
        self._figure(rows[2])
        self._bar(QRectF(self.left, rows[3], self.width, 6 if self.low else 8))
        self._words(rows[4])
        if not self.low:
            small = sized_font(11)
            fits = QFontMetricsF(small).horizontalAdvance(self.view.detail) <= self.width - 24
            detail = self.view.detail if fits else self.view.short_detail
            self._text(detail, self.left, 120, self.width - 24, small, self.theme.dim)
            self._text(self.view.link, self.left, 137, self.width - 24, small, self.theme.dim)

    def _frame(self) -> None:
        view, theme = self.view, self.theme
        outline = QRectF(self.rect).adjusted(0.75, 0.75, -0.75, -0.75)
        self.painter.setBrush(theme.surface)
        edge, width = (theme.bad, 1.5) if view.outlined else (theme.line, 1.0)
        if self.focused:
            edge, width = theme.accent, 2.0
        self.painter.setPen(QPen(edge, width))
        self.painter.drawRoundedRect(outline, _RADIUS, _RADIUS)

    def _name(self, top: float) -> None:
        view, theme = self.view, self.theme
        self.painter.setPen(Qt.PenStyle.NoPen)
        self.painter.setBrush(self.hue)
        self.painter.drawEllipse(QPointF(self.left + 4, top + 10), 4, 4)
        small = sized_font(11)
        layers = view.layers if self.roomy else ""
        taken = QFontMetricsF(small).horizontalAdvance(layers) + 8 if layers else 0.0
        self._text(layers, self.left, top, self.width, small, theme.dim, align=_RIGHT, height=20)
        strong = sized_font(13 if not self.low else 12, QFont.Weight.DemiBold)
        color = theme.dim if view.faded else theme.text
        self._text(view.name, self.left + 15, top, self.width - 15 - taken, strong, color, height=20)

    def _figure(self, top: float) -> None:
        view, theme = self.view, self.theme
        size, height = (17, 24.0) if self.low else (22, 32.0)
        large = sized_font(size, QFont.Weight.DemiBold)
        color = theme.dim if view.faded else theme.text
        self._text(view.number, self.left, top, self.width, large, color, height=height)
        start = QFontMetricsF(large).horizontalAdvance(view.number) + 5
        small = sized_font(11)
        room = self.width - start
        unit = view.unit if QFontMetricsF(small).horizontalAdvance(view.unit) <= room else view.short_unit
        offset = 3.0 if self.low else 4.5  # the small text stands on the line of the large one
        self._text(unit, self.left + start, top + offset, room, small, theme.dim, height=height)

    def _bar(self, bar: QRectF) -> None:
        view, theme = self.view, self.theme
        clip = QPainterPath()
        clip.addRoundedRect(bar, bar.height() / 2, bar.height() / 2)
        self.painter.save()
        self.painter.setClipPath(clip)
        self.painter.fillRect(bar, theme.track)
        left = bar.left()
        for share, color in ((view.used, theme.faint), (view.own, self.hue), (view.beside, faded(self.hue, 0.5))):
            # what is there is seen, however little of the bar it fills
            width = max(share * bar.width(), 2.0) if share > 0 else 0.0
            self.painter.fillRect(QRectF(left, bar.top(), width, bar.height()), color)
            left += width
        self.painter.restore()
        if view.bound is not None:
            x = bar.left() + view.bound * bar.width()
            self.painter.setPen(QPen(theme.dim, 1.5))
            self.painter.drawLine(QPointF(x, bar.top() - 3), QPointF(x, bar.bottom() + 3))
        if view.limit is not None:
            x = bar.left() + view.limit * bar.width()
            self.painter.setPen(QPen(theme.bad, 2))
            self.painter.drawLine(QPointF(x, bar.top() - 4), QPointF(x, bar.bottom() + 4))

    def _words(self, top: float) -> None:
        view = self.view
        color = {
            Tone.GOOD: self.theme.good,
            Tone.WARN: self.theme.warn,
            Tone.BAD: self.theme.bad,
            Tone.DIM: self.theme.dim,
            Tone.BUSY: self.theme.text,
        }[view.tone]
        font = sized_font(11, QFont.Weight.Medium)
        room = self.width - 16
        words = view.words if QFontMetricsF(font).horizontalAdvance(view.words) <= room else view.short_words
        draw_glyph(self.painter, view.glyph, QPointF(self.left + 5, top + 8), color)
        self._text(words, self.left + 16, top, room, font, color)

    def _text(
        self,
        text: str,
        left: float,
        top: float,
        width: float,
        font: QFont,
        color: QColor,
        *,
        align: Qt.AlignmentFlag = _LEFT,
        height: float = 16.0,
    ) -> None:
        if not text or width <= 0:
            return
        elided = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, width + 0.5)
        self.painter.setFont(font)
        self.painter.setPen(color)
        self.painter.drawText(QRectF(left, top, width + 1, height), align, elided)


def draw_glyph(painter: QPainter, glyph: Glyph, center: QPointF, color: QColor) -> None:
    """Draw a mark about 10 px wide, with its own pen and brush."""
    pen = QPen(color, 1.7, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)

    def at(x: float, y: float) -> QPointF:
        return center + QPointF(x, y)

    match glyph:
        case Glyph.CHECK:
            painter.drawPolyline([at(-4, 0), at(-1.2, 3.2), at(4.2, -3.6)])
        case Glyph.BANG:
            painter.drawLine(at(0, -4.5), at(0, 0.8))
            painter.drawPoint(at(0, 4))
        case Glyph.CROSS:
            painter.drawLine(at(-3.3, -3.3), at(3.3, 3.3))
            painter.drawLine(at(-3.3, 3.3), at(3.3, -3.3))
        case Glyph.DASH:
            painter.drawLine(at(-3.5, 0), at(3.5, 0))
        case Glyph.DOTS:
            painter.setBrush(color)
            painter.setPen(Qt.PenStyle.NoPen)
            for x in (-4.0, 0.0, 4.0):
                painter.drawEllipse(at(x, 0), 1.3, 1.3)
        case Glyph.PLAY:
            painter.setBrush(color)
            painter.drawPolygon([at(-2.5, -3.6), at(3.6, 0), at(-2.5, 3.6)])
