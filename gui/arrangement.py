"""What a person has set of a plan, as one frozen value: undo and redo go from one to another. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gui.preferences import ContextTokens  # noqa: TC001 - msgspec resolves the annotation when it decodes
from gui.split.model import Split, even

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runtime.planning.plan import Goal, GroupOffer, Plan, UnusedNode


@dataclass(frozen=True, slots=True)
class KeptSplit:
    """Of one model, from one window to the next."""

    order: tuple[str, ...]
    counts: tuple[int, ...]
    context_tokens: ContextTokens | None = None


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
    groups: tuple[tuple[str, ...], ...] = ()
    """Nodes that share every layer of a stage, by their ids; the split gives the stage's layers to the first."""
    offer: GroupOffer | None = None
    """Groups that would reach the goal better."""

    def for_nodes(self, split: Split, ids: Sequence[str]) -> Arrangement:
        """After other nodes came into view; who holds layers of its own now is not left out, nor shares another's."""
        held = {node_id for node_id, count in zip(ids, split.counts, strict=True) if count}
        whole = tuple(group for group in self.groups if {*group} <= {*ids} and not held & {*group[1:]})
        return replace(self, split=split, goal=None, unused=(), offer=None, groups=whole, left_out=self.left_out - held)

    def for_another_model(self) -> Arrangement:
        """Only what is said of the nodes stays."""
        return Arrangement(self.split, self.order, left_out=self.left_out)

    def by_hand(self, split: Split) -> Arrangement:
        """With a split that a person made; whoever gets layers by it is left out no more."""
        return replace(self, split=split, goal=None, unused=(), offer=None)

    def boundary_moved(self, boundary: int, cut: int, ids: Sequence[str]) -> Arrangement:
        """With the boundary after a node at ``cut``, or as near as its neighbours allow. A group moves as one."""
        return self._by_stages(boundary, ids, lambda stages, place, _leaders: stages.moved(place, cut))

    def balanced(self, boundary: int, budgets: Mapping[str, float], ids: Sequence[str]) -> Arrangement:
        """With the layers on both sides of a boundary shared in proportion to the nodes' ``budgets``."""
        return self._by_stages(
            boundary,
            ids,
            lambda stages, place, leaders: stages.balanced(place, [budgets[leader] for leader in leaders]),
        )

    def _by_stages(
        self, boundary: int, ids: Sequence[str], change: Callable[[Split, int, Sequence[str]], Split]
    ) -> Arrangement:
        """Change the split of those that have layers of their own, at the boundary that is meant among them."""
        followers = {member for group in self.groups for member in group[1:]}
        counts = dict(zip(ids, self.split.counts, strict=True))
        leaders = [node_id for node_id in ids if node_id not in followers]
        place = sum(node_id not in followers for node_id in ids[: boundary + 1]) - 1
        if not 0 <= place < len(leaders) - 1:
            return self
        stages = change(Split(tuple(counts[leader] for leader in leaders)), place, leaders)
        counts |= dict(zip(leaders, stages.counts, strict=True))
        return self.by_hand(Split(tuple(counts[node_id] for node_id in ids)))

    def for_goal(self, plan: Plan, ids: Sequence[str]) -> Arrangement:
        """As the best plan for a goal has it, with what it says of nodes left out and of groups."""
        return replace(self.of_plan(plan, ids), goal=plan.goal, unused=plan.unused, offer=plan.offer)

    def together(self, group: tuple[str, ...], ids: Sequence[str]) -> Arrangement:
        """With nodes that share every layer that they had one by one."""
        whole = tuple(dict.fromkeys(member for one in group for member in self.group_of(one)))
        counts = dict(zip(ids, self.split.counts, strict=True))
        total = sum(counts.get(member, 0) for member in whole)
        counts |= dict.fromkeys(whole, 0) | {whole[0]: total}
        others = tuple(other for other in self.groups if not set(other) & set(whole))
        made = self._with_counts(counts, ids)
        return replace(made, groups=(*others, whole), goal=None, unused=(), offer=None)

    def apart(self, node_id: str, ids: Sequence[str]) -> Arrangement:
        """With the nodes of a group as stages of their own again, each with a part of its layers."""
        group = self.group_of(node_id)
        counts = dict(zip(ids, self.split.counts, strict=True))
        parts = even(sum(counts.get(member, 0) for member in group), len(group)).counts
        made = self._with_counts(counts | dict(zip(group, parts, strict=True)), ids)
        return replace(made, groups=tuple(other for other in self.groups if other != group), goal=None, offer=None)

    def group_of(self, node_id: str) -> tuple[str, ...]:
        """The group of a node; itself if it is in none."""
        return next((group for group in self.groups if node_id in group), (node_id,))

    def of_plan(self, plan: Plan, ids: Sequence[str]) -> Arrangement:
        """As ``plan`` has it, over the nodes ``ids``: those without layers come last."""
        counts = {stage.ranks[0].node_id: stage.layer_count for stage in plan.stages}
        groups = [tuple(rank.node_id for rank in stage.ranks) for stage in plan.stages if len(stage.ranks) > 1]
        first = plan.node_ids
        made = self._with_counts(counts, (*first, *(node_id for node_id in ids if node_id not in first)))
        return replace(made, groups=tuple(groups))

    def evenly(self, ids: Sequence[str]) -> Arrangement:
        """The same number of layers for every node that is not left out."""
        followers = {member for group in self.groups for member in group[1:]}
        own = [node_id for node_id in ids if node_id not in followers]
        part = [node_id for node_id in own if node_id not in self.left_out] or own
        counts = dict(zip(part, even(self.split.layer_count, len(part)).counts, strict=True))
        return replace(self._with_counts(counts, ids), goal="even", unused=(), offer=None)

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
            offer=None,
            groups=tuple(group for group in self.groups if node_id not in group),
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
        return replace(self._with_counts(counts, order), goal=None, unused=(), offer=None)

    def _with_counts(self, counts: Mapping[str, int], order: Sequence[str]) -> Arrangement:
        split = Split(tuple(counts.get(node_id, 0) for node_id in order))
        held = {node_id for node_id, count in counts.items() if count}
        return replace(self, split=split, order=tuple(order), left_out=self.left_out - held)
