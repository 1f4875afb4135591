"""The painted model: ruler, layer cells, a hue per node, ribbons down to the cards, and the bubble of a drag."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from PySide6.QtCore import QLine, QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QLinearGradient, QPainter, QPainterPath, QPen

from gui.split.kinds import Kind
from gui.theme import faded, ink_on, sized_font

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.split.geometry import Geometry
    from gui.split.view import EditorView
    from gui.theme import Theme

_RADIUS = 8.0
_GAP = 3.0
_CENTER = Qt.AlignmentFlag.AlignCenter
_BUBBLE_HEIGHT = 22.0


def paint_empty(painter: QPainter, geometry: Geometry, theme: Theme) -> None:
    """The bar of a model that lies on no node yet."""
    bar = geometry.bar
    painter.setPen(QPen(theme.faint, 1, Qt.PenStyle.DashLine))
    painter.setBrush(theme.surface)
    painter.drawRoundedRect(bar.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
    _paint_cells(painter, geometry, range(1, geometry.layer_count), theme.line)


def paint_ruler(painter: QPainter, geometry: Geometry, theme: Theme, covered: QRectF | None) -> None:
    """Layer numbers above the bar, save those under ``covered``."""
    painter.setFont(sized_font(11))
    painter.setPen(theme.dim)
    for layer in geometry.ruler():
        box = QRectF(geometry.x_of(layer) - 20, geometry.bar.top() - 21, 40, 14)
        if covered is None or not covered.intersects(box.adjusted(8, 0, -8, 0)):
            painter.drawText(box, _CENTER, str(layer))


def paint_pipeline(painter: QPainter, geometry: Geometry, view: EditorView, theme: Theme, exposed: QRectF) -> None:
    """Each node's run of cells, joined by its ribbon to its card; also to those of nodes that share it.

    Only of nodes of which something lies in ``exposed``: a drag changes two of them.
    """
    first = 0
    followers = [(index, card) for index, card in enumerate(view.cards) if card.leader is not None]
    grips = geometry.grips([sum(view.counts[: index + 1]) for index in range(len(view.counts) - 1)])
    for index, count in enumerate(view.counts):
        hue, end = theme.hue(view.cards[index].hue), first + count
        if count and _is_exposed(geometry, view, index, (first, end), exposed):
            segment = QRectF(geometry.bar)
            segment.setLeft(geometry.x_of(first) + (_GAP / 2 if first else 0))
            segment.setRight(geometry.x_of(end) - (_GAP / 2 if end < view.layer_count else 0))
            _paint_ribbon(painter, geometry, index, segment, hue, theme)
            for follower, card in followers:
                if card.leader == index:
                    _paint_ribbon(painter, geometry, follower, segment, theme.hue(card.hue), theme)
            _paint_segment(painter, geometry, segment, range(first, end), hue, hatched=view.cards[index].hatched)
            _paint_kinds(painter, geometry, view.kinds, range(first, end), ink_on(hue))
        elif not count and view.cards[index].leader is None:
            _paint_left_out(painter, geometry, index, grips, hue)
        first = end


def _is_exposed(geometry: Geometry, view: EditorView, index: int, layers: tuple[int, int], exposed: QRectF) -> bool:
    sharing = (index, *(other for other, card in enumerate(view.cards) if card.leader == index))
    extents = [geometry.extent(one, *layers) for one in sharing]
    return any(left <= exposed.right() and exposed.left() <= right for left, right in extents)


def changed_extent(geometry: Geometry, before: EditorView, now: EditorView) -> tuple[float, float] | None:
    """Left and right end of what looks different in ``now``; None when that may be anything."""
    cards = (*before.cards, *now.cards)
    if (
        replace(before, counts=now.counts, cards=now.cards, locked=now.locked) != now
        or len(before.cards) != len(now.cards)
        or now.tensor
        or any(card.leader is not None for card in cards)
        or 0 in (*before.counts, *now.counts)  # its thread stands between handles that make room for each other
    ):
        return None
    ends: list[float] = []
    looks = [_looks(before), _looks(now)]
    for index, (old, new) in enumerate(zip(*looks, strict=True)):
        if old != new:
            for first, end, _hue, _hatched in (old, new):
                ends += geometry.extent(index, first, end)
    return (min(ends), max(ends)) if ends else (0.0, 0.0)


def _looks(view: EditorView) -> list[tuple[int, int, int, bool]]:
    """Of each node: its first layer, the one after its last, its hue, and whether it is hatched."""
    edges = [0, *accumulate(view.counts)]
    return [(edges[index], edges[index + 1], card.hue, card.hatched) for index, card in enumerate(view.cards)]


def paint_tensor(painter: QPainter, geometry: Geometry, view: EditorView, theme: Theme) -> None:
    """Every node has a stripe through all layers."""
    bar = geometry.bar
    stripe = bar.height() / max(len(view.cards), 1)
    part = bar.width() / max(len(view.cards), 1)
    for index in range(len(view.cards)):
        segment = QRectF(bar.left() + index * part, bar.top(), part, bar.height())
        hue = theme.hue(view.cards[index].hue)
        _paint_ribbon(painter, geometry, index, segment.adjusted(_GAP / 2, 0, -_GAP / 2, 0), hue, theme)
    clip = QPainterPath()
    clip.addRoundedRect(bar, _RADIUS, _RADIUS)
    painter.save()
    painter.setClipPath(clip)
    for index in range(len(view.cards)):
        hue = theme.hue(view.cards[index].hue)
        painter.fillRect(QRectF(bar.left(), bar.top() + index * stripe, bar.width(), stripe - 1), hue)
    painter.restore()
    _paint_cells(painter, geometry, range(1, view.layer_count), QColor(0, 0, 0, 38))


def _paint_segment(
    painter: QPainter, geometry: Geometry, segment: QRectF, layers: range, hue: QColor, *, hatched: bool
) -> None:
    radius = min(_RADIUS, segment.width() / 2)
    path = QPainterPath()
    path.addRoundedRect(segment, radius, radius)
    gradient = QLinearGradient(segment.topLeft(), segment.bottomLeft())
    gradient.setColorAt(0, hue.lighter(108))
    gradient.setColorAt(1, hue)
    painter.fillPath(path, gradient)
    if hatched:
        painter.save()
        painter.setClipPath(path)
        painter.setPen(QPen(QColor(0, 0, 0, 70), 5))
        slope = segment.height() + 12
        starts = range(round(segment.left() - slope), round(segment.right()), 13)
        painter.drawLines([QLineF(x, segment.bottom() + 6, x + slope, segment.top() - 6) for x in starts])
        painter.restore()
    _paint_cells(painter, geometry, range(layers.start + 1, layers.stop), QColor(0, 0, 0, 36))
    _paint_count(painter, segment, layers, ink_on(hue))


def _paint_cells(painter: QPainter, geometry: Geometry, edges: range, color: QColor) -> None:
    cell, bar = geometry.cell_width, geometry.bar
    if cell < 3:
        return
    xs = [round(bar.left() + layer * cell) for layer in edges]
    top, bottom = round(bar.top()) + 1, round(bar.bottom()) - 2
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)  # upright lines on whole pixels need none
    painter.setPen(QPen(color, 1))
    painter.drawLines([QLine(x, top, x, bottom) for x in xs])
    painter.restore()


def _paint_kinds(painter: QPainter, geometry: Geometry, kinds: Sequence[Kind], layers: range, ink: QColor) -> None:
    """A mark at the foot of each cell: three dots for experts, a short line for a sliding window, a wave for linear."""
    if not kinds or geometry.cell_width < 4:
        return
    y = geometry.bar.bottom() - 4
    half = min(geometry.cell_width / 2 - 1, 5.0)
    pen = QPen(faded(ink, 0.75), 1.5, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    for layer in layers:
        x = geometry.x_of(layer) + geometry.cell_width / 2
        match kinds[layer]:
            case Kind.EXPERTS:
                painter.drawPoints([QPointF(x + offset * half * 0.7, y) for offset in (-1, 0, 1)])
            case Kind.SLIDING:
                painter.drawLine(QPointF(x - half * 0.7, y), QPointF(x + half * 0.7, y))
            case Kind.LINEAR:
                rise = QPointF(0, 2)
                left, right = QPointF(x - half * 0.7, y), QPointF(x + half * 0.7, y)
                painter.drawPolyline([left + rise, QPointF(x, y) - rise, right + rise])
            case Kind.DENSE:
                pass


def _paint_count(painter: QPainter, segment: QRectF, layers: range, ink: QColor) -> None:
    painter.setPen(ink)
    count, span = str(len(layers)), f"{layers.start}–{layers.stop - 1}" if len(layers) > 1 else str(layers.start)
    large, small = sized_font(15, QFont.Weight.DemiBold), sized_font(11, QFont.Weight.Medium)
    room = segment.width() - 10
    if QFontMetricsF(small).horizontalAdvance(span) <= room and segment.width() > 40:
        painter.setFont(large)
        painter.drawText(segment.adjusted(0, -9, 0, -9), _CENTER, count)
        painter.setFont(small)
        painter.drawText(segment.adjusted(0, 10, 0, 10), _CENTER, span)
    elif QFontMetricsF(large).horizontalAdvance(count) <= room:
        painter.setFont(large)
        painter.drawText(segment, _CENTER, count)


def _paint_ribbon(
    painter: QPainter, geometry: Geometry, index: int, segment: QRectF, hue: QColor, theme: Theme
) -> None:
    card = geometry.cards[index]
    left, right = geometry.ribbon_foot(index)
    top, foot = segment.bottom() + 4, geometry.cards[0].top() - 1
    middle = (top + foot) / 2
    path = QPainterPath(QPointF(segment.left(), top))
    path.cubicTo(segment.left(), middle, left, middle, left, foot)
    if card.top() > foot + 2:  # the lower row: through the gap between two upper cards
        path.lineTo(left, card.top() - 1)
        path.lineTo(right, card.top() - 1)
    path.lineTo(right, foot)
    path.cubicTo(right, middle, segment.right(), middle, segment.right(), top)
    path.closeSubpath()
    gradient = QLinearGradient(0, top, 0, card.top())
    gradient.setColorAt(0, faded(hue, 0.42 if theme.dark else 0.36))
    gradient.setColorAt(1, faded(hue, 0.10 if card.top() <= foot + 2 else 0.42))
    painter.fillPath(path, gradient)


def _paint_left_out(painter: QPainter, geometry: Geometry, index: int, grips: Sequence[float], hue: QColor) -> None:
    """A thread in the node's hue between the handles that meet, to show whose place it is."""
    bar = geometry.bar
    left = grips[index - 1] if index > 0 else bar.left()
    right = grips[index] if index < len(grips) else bar.right()
    x = (left + right) / 2
    painter.setPen(QPen(QColor(0, 0, 0, 90), 1))
    painter.setBrush(hue)
    painter.drawRoundedRect(QRectF(x - 2, bar.top() + 6, 4, bar.height() - 12), 2, 2)


def bubble_box(geometry: Geometry, grip: float, text: str) -> QRectF:
    """Where the bubble over a handle lies, inside the editor."""
    width = QFontMetricsF(sized_font(12, QFont.Weight.DemiBold)).horizontalAdvance(text) + 20
    left = min(max(grip - width / 2, 4.0), geometry.width - width - 4)
    return QRectF(left, geometry.bar.top() - 5 - _BUBBLE_HEIGHT, width, _BUBBLE_HEIGHT)


def bubble_extent(box: QRectF) -> tuple[float, float]:
    """Left and right end of what a bubble changes: itself, and the numbers that give way to it."""
    return box.left() - 34, box.right() + 34


def paint_bubble(painter: QPainter, box: QRectF, grip: float, text: str, theme: Theme) -> None:
    """The layer counts on both sides of the handle that is being moved."""
    path = QPainterPath()
    path.addRoundedRect(box, 6, 6)
    arrow = QPainterPath(QPointF(grip - 5, box.bottom() - 0.5))
    arrow.lineTo(grip, box.bottom() + 4.5)
    arrow.lineTo(grip + 5, box.bottom() - 0.5)
    painter.fillPath(path.united(arrow), theme.text)
    painter.setFont(sized_font(12, QFont.Weight.DemiBold))
    painter.setPen(theme.window)
    painter.drawText(box, _CENTER, text)
