"""The split as a value: how many layers each node has, in model order. No Qt, no bytes, no verdicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from runtime.planning.shares import even_split

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Split:
    """Layers per node.

    Boundary ``i`` lies between the nodes ``i`` and ``i + 1``; its cut is the first layer of the latter. Every
    method returns a new split with the same number of layers.
    """

    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(count < 0 for count in self.counts):
            raise ValueError(f"a node cannot hold fewer than no layers: {self.counts}")

    @property
    def layer_count(self) -> int:
        return sum(self.counts)

    @property
    def cuts(self) -> tuple[int, ...]:
        return tuple(accumulate(self.counts))[:-1]

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """For each node its first layer and the one after its last."""
        ends = tuple(accumulate(self.counts))
        return tuple((end - count, end) for count, end in zip(self.counts, ends, strict=True))

    def limits(self, boundary: int) -> tuple[int, int]:
        """Between which layers a boundary can move: its neighbours stay where they are."""
        first, _ = self.spans[boundary]
        _, end = self.spans[boundary + 1]
        return first, end

    def moved(self, boundary: int, cut: int) -> Split:
        """With ``boundary`` at ``cut``, or as near to it as its neighbours allow."""
        low, high = self.limits(boundary)
        cut = min(max(cut, low), high)
        counts = list(self.counts)
        counts[boundary : boundary + 2] = cut - low, high - cut
        return replace(self, counts=tuple(counts))

    def balanced(self, boundary: int, weights: Sequence[float]) -> Split:
        """With the layers of the two nodes beside ``boundary`` shared in proportion to their ``weights``."""
        low, high = self.limits(boundary)
        left, right = weights[boundary], weights[boundary + 1]
        share = left / (left + right) if left + right > 0 else 0.5
        return self.moved(boundary, low + round((high - low) * share))

    def carried(self, old: Sequence[str], new: Sequence[str]) -> Split:
        """The same split after the nodes changed from ``old`` to ``new`` (ids, in model order).

        Nodes that stay keep their layers, newcomers get none, and the layers of a node that left go to the nearest
        neighbour before it that stays, else after it. When nobody stays, the split is even.
        """
        kept = dict.fromkeys((node for node in old if node in new), 0)
        if not kept:
            return even(self.layer_count, len(new))
        heir = next(iter(kept))
        for node, count in zip(old, self.counts, strict=True):
            heir = node if node in kept else heir
            kept[heir] += count
        return Split(tuple(kept.get(node, 0) for node in new))


def even(layer_count: int, node_count: int) -> Split:
    """The planner's even split, as a value of this module; no node holds no layer."""
    return Split(even_split(layer_count, node_count) if node_count else ())
