"""Mixed plans: nodes that share the layers of a stage, as a tensor group, where that is faster than stages alone.

A group of two halves what each of them reads for a layer, and pays with two all-reduces. So only nodes of about the
same speed and memory are thought of, joined by links that were measured, and only if a layer is faster on the group
than on one of them. Of the groups of one size the one with the quickest links counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from runtime.planning.advice import NoFit
from runtime.planning.cost import decode_seconds
from runtime.planning.optimum import best_split
from runtime.planning.places import Place, split_problem
from runtime.planning.refusals import refuse_tensor
from runtime.planning.values import GroupOffer, PredictedSpeed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.models.layout import ModelLayout
    from runtime.planning.evaluation import Split
    from runtime.planning.places import Link, Pins, PlanNode
    from runtime.planning.values import Goal

    Group = tuple[PlanNode, ...]

_ALIKE = 1.15
"""The faster, or larger, of two nodes that are alike exceeds the other by at most this."""
_WORTH = 1.02
"""So much faster another way has to be before it is spoken of."""
_MOST_GROUPS = 64
"""If more groups of one size can be made of nodes that are alike, none of that size is looked at."""


@dataclass(frozen=True, slots=True)
class OtherWays:
    """The other ways to reach a goal with the same nodes: in groups, or without those that a person made."""

    layout: ModelLayout
    nodes: Sequence[PlanNode]
    links: Sequence[Link]
    context_tokens: int
    pins: Pins
    goal: Goal

    def better_together(self, alone: Split) -> GroupOffer | None:
        """The tensor groups with which the goal is reached best, if they are worth it."""
        if not self._has_speed or self.pins.groups:
            return None
        best, offer = _rate(alone, self.goal) * _WORTH, None
        for groups in self._groupings():
            grouped = {node.node_id for group in groups for node in group}
            rest = [(node,) for node in self.nodes if node.node_id not in grouped]
            found = self._best([*groups, *rest])
            if found is None or _rate(found, self.goal) <= best:
                continue
            best = _rate(found, self.goal)
            names = " and ".join(Place(group).name for group in groups)
            kind = "tensor groups" if len(groups) > 1 else "one tensor group"
            offer = GroupOffer(
                tuple(tuple(node.node_id for node in group) for group in groups),
                f"{names} as {kind}: {best:.1f} tok/s instead of {_rate(alone, self.goal):.1f}",
                predicted_speed(found),
            )
        return offer

    def better_apart(self, grouped: Split) -> str | None:
        """A warning where the nodes of groups that a person made would be faster as stages of their own."""
        if not self._has_speed or not self.pins.groups:
            return None
        found = self._best([(node,) for node in self.nodes])
        rate = _rate(grouped, self.goal)
        if found is None or _rate(found, self.goal) <= rate * _WORTH:
            return None
        which = "group makes" if len(self.pins.groups) == 1 else "groups make"
        return f"The {which} this slower: {rate:.1f} tok/s, {_rate(found, self.goal):.1f} without."

    @property
    def _has_speed(self) -> bool:
        return self.goal in {"chat", "requests"} and not self.layout.pipeline_refusal

    def _best(self, groups: Sequence[Group]) -> Split | None:
        places = [Place(group) for group in groups]
        problem = split_problem(self.layout, places, self.links, self.context_tokens)
        found = best_split(problem, self.goal, needed_places(places, self.pins))
        return None if isinstance(found, NoFit) else found.split

    def _groupings(self) -> Iterator[tuple[Group, ...]]:
        """Groups of nodes that are alike and compute a layer faster than one of them, in each way to make some."""
        joined = {frozenset((link.one_id, link.other_id)) for link in self.links}
        for kind in _kinds(self.nodes):
            alone = self._token_seconds((kind[0],))
            for size in range(2, len(kind) + 1):
                candidates = list(combinations(kind, size))
                if refuse_tensor(self.layout, size) or len(candidates) > _MOST_GROUPS:
                    continue
                timed = [(self._token_seconds(group), group) for group in candidates if _ring_is_known(group, joined)]
                timed.sort(key=lambda pair: pair[0])
                quicker = [group for seconds, group in timed if seconds < alone]
                if quicker:
                    yield (quicker[0],)
                if len(apart := _apart(quicker)) > 1:
                    yield apart

    def _token_seconds(self, group: Group) -> float:
        """All layers on this group alone, for one token of one chat."""
        problem = split_problem(self.layout, [Place(group)], self.links, self.context_tokens)
        model = problem.model_on(0)
        return decode_seconds(model, problem.nodes[0].speed, 0, len(model.layers), self.context_tokens)


def needed_places(places: Sequence[Place], pins: Pins) -> frozenset[int]:
    """Those that have to take part because one of their nodes has."""
    return frozenset(
        at for at, place in enumerate(places) if any(node.node_id in pins.needed for node in place.members)
    )


def predicted_speed(split: Split) -> PredictedSpeed:
    """All speeds of a split."""
    return PredictedSpeed(
        split.predicted.chat_tokens_per_second,
        split.predicted.requests_tokens_per_second,
        split.ttft_seconds(1024),
        split.ttft_seconds(16384),
    )


def _rate(split: Split, goal: Goal) -> float:
    predicted = split.predicted
    return predicted.requests_tokens_per_second if goal == "requests" else predicted.chat_tokens_per_second


def _kinds(nodes: Sequence[PlanNode]) -> list[list[PlanNode]]:
    """Nodes that are alike, each in one list, in the nodes' order."""
    kinds: list[list[PlanNode]] = []
    for node in nodes:
        kind = next((kind for kind in kinds if _alike(kind[0], node)), None)
        if kind is None:
            kinds.append([node])
        else:
            kind.append(node)
    return kinds


def _alike(one: PlanNode, other: PlanNode) -> bool:
    pairs = ((one.speed.bytes_per_second, other.speed.bytes_per_second), (one.budget_bytes, other.budget_bytes))
    return all(max(pair) <= _ALIKE * min(pair) for pair in pairs)


def _ring_is_known(group: Group, joined: set[frozenset[str]]) -> bool:
    ring = zip(group, (*group[1:], group[0]), strict=True)
    return all(frozenset((one.node_id, other.node_id)) in joined for one, other in ring)


def _apart(groups: Sequence[Group]) -> tuple[Group, ...]:
    """As many as have no node in common, the quickest first."""
    taken: set[str] = set()
    found = []
    for group in groups:
        ids = {node.node_id for node in group}
        if not ids & taken:
            taken |= ids
            found.append(group)
    return tuple(found)
