"""Where the parts of the split editor lie. Pure numbers, so that it is tested without a window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF

if TYPE_CHECKING:
    from collections.abc import Sequence

SIDE = 24.0
"""Margin left and right."""
BAR_TOP, BAR_HEIGHT = 30.0, 52.0
CARD_GAP = 12.0
HANDLE_GAP = 13.0
"""The least distance of two handles' grips, so that each can be grabbed."""
HANDLE_REACH = 11.0
"""How far from its grip a handle can be grabbed, where no other handle is nearer."""
_ONE_ROW_CARD = 136.0
"""Narrower cards than this are set in two rows."""


@dataclass(frozen=True)
class Geometry:
    """The editor's parts for one width. Each is computed once, when it is first asked for; nobody changes them.

    Cards lie in one row, or, when many, in two, the second set off by half a card. Even nodes then have the upper row,
    and the ribbon of an odd one falls through the gap between two upper cards.
    """

    width: float
    layer_count: int
    node_count: int
    link_row: bool = False
    """Whether cards have a line for the way to the next node."""

    @cached_property
    def bar(self) -> QRectF:
        return QRectF(SIDE, BAR_TOP, max(self.width - 2 * SIDE, 1.0), BAR_HEIGHT)

    @cached_property
    def cell_width(self) -> float:
        return self.bar.width() / max(self.layer_count, 1)

    def x_of(self, layer: int) -> float:
        """The left edge of a layer's cell."""
        return self.bar.left() + layer * self.cell_width

    def layer_at(self, x: float) -> int:
        """The cut nearest to ``x``."""
        return min(max(round((x - self.bar.left()) / self.cell_width), 0), self.layer_count)

    @cached_property
    def rows(self) -> int:
        return 2 if self.node_count > 3 and self._one_row_width < _ONE_ROW_CARD else 1

    @cached_property
    def _one_row_width(self) -> float:
        count = max(self.node_count, 1)
        return (self.bar.width() - CARD_GAP * (count - 1)) / count

    @cached_property
    def card_width(self) -> float:
        if self.rows == 1:
            return self._one_row_width
        slots = (self.node_count + 1) / 2
        return (self.bar.width() - CARD_GAP * (slots - 0.5)) / slots

    @property
    def card_height(self) -> float:
        return (162.0 if self.link_row else 146.0) if self.rows == 1 else 95.0

    @property
    def ribbon_height(self) -> float:
        return 46.0 if self.rows == 1 else 34.0

    @cached_property
    def cards(self) -> tuple[QRectF, ...]:
        """The card of each node; one where there is none yet."""
        width, height = self.card_width, self.card_height
        top = self.bar.bottom() + self.ribbon_height
        places = [(0, float(index)) if self.rows == 1 else (index % 2, index / 2) for index in range(self.node_count)]
        return tuple(
            QRectF(self.bar.left() + column * (width + CARD_GAP), top + row * (height + CARD_GAP), width, height)
            for row, column in places or [(0, 0.0)]
        )

    def place_at(self, x: float, y: float) -> int:
        """The place in the order of nodes that a card dropped there takes."""
        middles = [card.center() for card in self.cards]
        return min(range(self.node_count), key=lambda index: abs(middles[index].x() - x) + abs(middles[index].y() - y))

    def ribbon_foot(self, index: int) -> tuple[float, float]:
        """Left and right end of where a node's ribbon comes down, at the height of the upper row."""
        card = self.cards[index]
        if self.rows == 2 and index % 2:
            half = CARD_GAP / 2 - 2
            return card.center().x() - half, card.center().x() + half
        return card.left() + 10, card.right() - 10

    @property
    def height(self) -> float:
        return self.cards[1 if self.rows == 2 else 0].bottom() + 4

    def extent(self, index: int, first: int, end: int) -> tuple[float, float]:
        """Left and right end of all that is painted for a node: layers ``[first, end)`` and its ribbon."""
        left, right = self.ribbon_foot(index)
        return min(self.x_of(first), left), max(self.x_of(end), right)

    def grips(self, cuts: Sequence[int]) -> list[float]:
        """Where the grips of the boundaries stand: on their cuts, or beside each other where cuts meet."""
        return spread([self.x_of(cut) for cut in cuts], HANDLE_GAP, self.bar.left(), self.bar.right())

    def reach(self, grips: Sequence[float], index: int) -> tuple[float, float]:
        """Left and right end of where a handle can be grabbed; half the way to its neighbours at most."""
        grip = grips[index]
        left, right = grip - HANDLE_REACH, grip + HANDLE_REACH
        if index > 0:
            left = max(left, (grips[index - 1] + grip) / 2)
        if index + 1 < len(grips):
            right = min(right, (grip + grips[index + 1]) / 2)
        return left, right

    def ruler(self) -> tuple[int, ...]:
        """The layers that are labelled above the bar, at least 44 px apart."""
        steps = (size * scale for scale in (1, 10, 100) for size in (1, 2, 5))
        step = next((step for step in steps if step * self.cell_width >= 44), 1000)
        return tuple(range(0, self.layer_count + 1, step))


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions ``gap`` apart in ``[low, high]``, moved from ``wanted`` (ascending) as little as that takes.

    Least squares, by pooling neighbours that are too near (isotonic regression of ``wanted[i] - i * gap``). Where there
    is no room for the gap, a smaller one.
    """
    if not wanted:
        return []
    if len(wanted) > 1:
        gap = min(gap, (high - low) / (len(wanted) - 1))
    pools: list[tuple[float, int]] = []  # mean, size
    for index, position in enumerate(wanted):
        mean, size = position - index * gap, 1
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean, size = (mean * size + before * count) / (size + count), size + count
        pools.append((mean, size))
    shifted = [mean for mean, size in pools for _ in range(size)]
    ceiling = high - gap * (len(wanted) - 1)
    return [min(max(position, low), ceiling) + index * gap for index, position in enumerate(shifted)]


def nice_height(geometry: Geometry) -> int:
    """The editor's height in whole pixels."""
    return ceil(geometry.height)
