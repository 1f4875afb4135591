"""From nodes and links as they were found to a problem that can be solved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from runtime.planning.cost import LinkSpeed, NodeSpeed, reduce_seconds
from runtime.planning.model_cost import model_cost
from runtime.planning.problem import CostedNode, SplitProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.models.layout import ModelLayout
    from runtime.planning.cost import ModelCost

UNKNOWN_LINK = LinkSpeed(rtt_seconds=3e-4, bytes_per_second=1e9)
"""Between nodes whose link nobody measured: about 10 gigabit Ethernet."""
UNREACHABLE = LinkSpeed(rtt_seconds=1e4, bytes_per_second=1.0)
"""Between nodes that do not reach each other: no search takes it if there is another way."""
_FLOPS_PER_BYTE = 30.0
"""Apple's GPUs do about so much arithmetic for each byte that their memory delivers."""
_LAYER_OVERHEAD_SECONDS = 20e-6
_RESERVE_BYTES, _RESERVE_SHARE = 2**30, 20


def table_speed(bytes_per_second: float) -> NodeSpeed:
    """The speed of a node of which only the bandwidth is known."""
    return NodeSpeed(bytes_per_second, bytes_per_second * _FLOPS_PER_BYTE, _LAYER_OVERHEAD_SECONDS)


UNKNOWN_SPEED = table_speed(100e9)
"""Of a node that does not say: what Apple's plain chips of the second and third generation promise."""


@dataclass(frozen=True, slots=True)
class PlanNode:
    """What the planner has to know of a node."""

    node_id: str
    name: str
    budget_bytes: int
    """Memory that a model may take on this node."""
    speed: NodeSpeed = UNKNOWN_SPEED
    reserve_bytes: int | None = None
    """The part of the budget that is kept free for activations, and for buffers that MLX makes a little larger than
    asked for; None: a gibibyte, or a twentieth of a small budget."""

    @property
    def reserved_bytes(self) -> int:
        if self.reserve_bytes is None:
            return min(_RESERVE_BYTES, self.budget_bytes // _RESERVE_SHARE)
        return self.reserve_bytes


@dataclass(frozen=True, slots=True)
class Link:
    """The way between two nodes, in both directions, as measured."""

    one_id: str
    other_id: str
    speed: LinkSpeed


@dataclass(frozen=True, slots=True)
class Pins:
    """What a person has fixed about the nodes, by their ids."""

    needed: frozenset[str] = frozenset()
    """These take part even if the plan is slower with them."""
    left_out: frozenset[str] = frozenset()
    """These do not. A split given by hand says by itself who takes part."""
    groups: tuple[tuple[str, ...], ...] = ()
    """Each of these is one stage, whose nodes share every layer of it."""


NO_PINS = Pins()


@dataclass(frozen=True, slots=True)
class Place:
    """A node that can be a stage, or a tensor group that acts as one."""

    members: tuple[PlanNode, ...]

    @property
    def name(self) -> str:
        return " + ".join(node.name for node in self.members)


def split_problem(
    layout: ModelLayout, places: Sequence[Place], links: Sequence[Link], context_tokens: int
) -> SplitProblem:
    """``layout`` over ``places``. Between groups, the first nodes of each speak."""
    model = model_cost(layout)
    known = {(link.one_id, link.other_id): link.speed for link in links}
    known |= {(other, one): speed for (one, other), speed in known.items()}

    def way(one: PlanNode, other: PlanNode) -> LinkSpeed:
        return known.get((one.node_id, other.node_id), UNKNOWN_LINK)

    nodes = tuple(_costed(model, place, [way(a, b) for a, b in _ring(place.members)]) for place in places)
    ways = tuple(tuple(way(one.members[0], other.members[0]) for other in places) for one in places)
    return SplitProblem(model, nodes, ways, context_tokens)


def _ring(members: Sequence[PlanNode]) -> list[tuple[PlanNode, PlanNode]]:
    return list(zip(members, (*members[1:], members[0]), strict=True))


def _costed(model: ModelCost, place: Place, ring: Sequence[LinkSpeed]) -> CostedNode:
    """The ranks of a group wait for the slowest of them, and each holds as much as the one with the least room."""
    count = len(place.members)
    least = min(place.members, key=lambda node: node.budget_bytes - node.reserved_bytes)
    if count == 1:
        return CostedNode(place.name, least.budget_bytes, least.reserved_bytes, least.speed)
    slowest = max(ring, key=lambda link: reduce_seconds(link, model.hidden_bytes, count, 1))
    speeds = [node.speed for node in place.members]
    speed = replace(
        min(speeds, key=lambda speed: speed.bytes_per_second),
        flops_per_second=min(speed.flops_per_second for speed in speeds),
        layer_overhead_seconds=max(speed.layer_overhead_seconds for speed in speeds)
        + reduce_seconds(slowest, model.hidden_bytes, count, 1),
    )
    return CostedNode(place.name, least.budget_bytes, least.reserved_bytes, speed, count, slowest, least.name)
