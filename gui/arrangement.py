"""What a person has set of a plan, as one frozen value: undo and redo go from one to another. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gui.split.model import Split, even

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime.planning.plan import Goal, Plan, UnusedNode


@dataclass(frozen=True, slots=True)
class KeptSplit:
    """Of one model, from one window to the next."""

    order: tuple[str, ...]
    counts: tuple[int, ...]
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The split, and all that decides whether it fits and how fast it is."""

    split: Split = field(default_factory=lambda: Split(()))
    order: tuple[str, ...] = ()
    """Node ids in model order; empty for the nodes as they come."""
    context_tokens: int | None = None
    """None: what the planner takes if nobody says."""
    reserve_cut_bytes: int = 0
    """Kept free on each node less than usual."""
    needed: frozenset[str] = frozenset()
    """Nodes that were put back in: they take part whatever it costs."""
    left_out: frozenset[str] = frozenset()
    """Nodes that a person left out: no goal gives them layers."""
    goal: Goal | None = None
    """What the split is best at; None once a boundary was moved."""
    unused: tuple[UnusedNode, ...] = ()
    """Nodes that the best split leaves out, and why."""

    def by_hand(self, split: Split) -> Arrangement:
        """With a split that a person made; whoever gets layers by it is left out no more."""
        return replace(self, split=split, goal=None, unused=())

    def of_plan(self, plan: Plan, ids: Sequence[str]) -> Arrangement:
        """As ``plan`` has it, over the nodes ``ids``: those without layers come last."""
        counts = {stage.ranks[0].node_id: stage.layer_count for stage in plan.stages}
        return self._with_counts(counts, (*counts, *(node_id for node_id in ids if node_id not in counts)))

    def evenly(self, ids: Sequence[str]) -> Arrangement:
        """The same number of layers for every node that is not left out."""
        part = [node_id for node_id in ids if node_id not in self.left_out]
        counts = dict(zip(part, even(self.split.layer_count, len(part)).counts, strict=True))
        return replace(self._with_counts(counts, ids), goal="even", unused=())

    def without(self, node_id: str, ids: Sequence[str]) -> Arrangement:
        """A node left out: its layers go to a neighbour. At least one node stays."""
        rest = [one for one in ids if one != node_id]
        if not rest:
            return self
        counts = dict(zip(rest, self.split.carried(ids, rest).counts, strict=True))
        return replace(
            self._with_counts(counts, ids),
            goal=None,
            unused=(),
            left_out=self.left_out | {node_id},
            needed=self.needed - {node_id},
        )

    def with_node(self, node_id: str) -> Arrangement:
        """A node that takes part in any case."""
        return replace(self, left_out=self.left_out - {node_id}, needed=self.needed | {node_id})

    def moved(self, node_id: str, place: int, ids: Sequence[str]) -> Arrangement:
        """A node and its layers at another place in the order of the model."""
        order = [one for one in ids if one != node_id]
        order.insert(place, node_id)
        counts = dict(zip(ids, self.split.counts, strict=True))
        return replace(self._with_counts(counts, order), goal=None, unused=())

    def _with_counts(self, counts: Mapping[str, int], order: Sequence[str]) -> Arrangement:
        split = Split(tuple(counts.get(node_id, 0) for node_id in order))
        held = {node_id for node_id, count in counts.items() if count}
        return replace(self, split=split, order=tuple(order), left_out=self.left_out - held)
