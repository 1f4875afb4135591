"""After a run: what each stage took beside what was predicted, and the split that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from runtime.planning.cost import NodeSpeed
from runtime.planning.plan import NO_PINS, make_plan
from runtime.planning.values import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime.models.layout import ModelLayout
    from runtime.planning.places import Link, Pins, PlanNode
    from runtime.planning.values import StagePlan


@dataclass(frozen=True, slots=True)
class StageComparison:
    """One stage, for one token of one chat."""

    node_names: tuple[str, ...]
    predicted_seconds: float
    measured_seconds: float | None
    """None if it was not measured."""

    @property
    def error(self) -> float | None:
        """How far the prediction was off, as a part of what was measured; above zero if it was too slow."""
        if self.measured_seconds is None:
            return None
        return (self.predicted_seconds - self.measured_seconds) / self.measured_seconds


@dataclass(frozen=True, slots=True)
class Proposal:
    """Another split, and what it is expected to gain. Both speeds follow from what was measured."""

    plan: Plan
    now_tokens_per_second: float
    then_tokens_per_second: float

    @property
    def gain(self) -> float:
        """0.25 is a quarter faster; 0 or less means that there is nothing to gain."""
        return self.then_tokens_per_second / self.now_tokens_per_second - 1


def compare(plan: Plan, measured: Mapping[str, float]) -> tuple[StageComparison, ...]:
    """Every stage beside ``measured``: seconds of a decode step by node id, a group's by the slowest of its nodes."""
    return tuple(
        StageComparison(tuple(rank.node_name for rank in stage.ranks), stage.decode_seconds, _measured(stage, measured))
        for stage in plan.stages
    )


def rebalance(
    layout: ModelLayout,
    nodes: Sequence[PlanNode],
    plan: Plan,
    measured: Mapping[str, float],
    *,
    links: Sequence[Link] = (),
    pins: Pins = NO_PINS,
) -> Proposal | None:
    """The best plan with nodes as fast as they were; None if no plan fits any more.

    ``plan`` is what ran, on some of ``nodes``. Its goal is kept; a split by hand is balanced for one chat.
    """
    factors = {
        rank.node_id: stage.decode_seconds / seconds
        for stage in plan.stages
        if (seconds := _measured(stage, measured)) and stage.decode_seconds > 0
        for rank in stage.ranks
    }
    known = [replace(node, speed=_corrected(node.speed, factors.get(node.node_id))) for node in nodes]
    counts = {stage.ranks[0].node_id: stage.layer_count for stage in plan.stages}
    order = {node_id: place for place, node_id in enumerate(counts)}
    known.sort(key=lambda node: order.get(node.node_id, len(order)))
    if plan.mode == "tensor":
        return None
    goal = plan.goal or "chat"
    split = [counts.get(node.node_id, 0) for node in known]
    context = plan.context_tokens
    now = make_plan(layout, known, split, context_tokens=context, links=links, pins=pins)
    then = make_plan(layout, known, goal=goal, context_tokens=context, links=links, pins=pins)
    ran = now if isinstance(now, Plan) else now.draft
    if ran is None or not isinstance(then, Plan):
        return None
    return Proposal(then, _rate(ran, goal), _rate(then, goal))


def _measured(stage: StagePlan, measured: Mapping[str, float]) -> float | None:
    found = [measured[rank.node_id] for rank in stage.ranks if measured.get(rank.node_id, 0.0) > 0]
    return max(found, default=None)


def _corrected(speed: NodeSpeed, factor: float | None) -> NodeSpeed:
    if factor is None:
        return speed
    return NodeSpeed(
        speed.bytes_per_second * factor,
        speed.flops_per_second * factor,
        speed.layer_overhead_seconds / factor,
        "measured",
        speed.flops_source,
    )


def _rate(plan: Plan, goal: str) -> float:
    assert plan.predicted is not None, "the planner predicts"
    if goal == "requests":
        return plan.predicted.requests_tokens_per_second
    return plan.predicted.chat_tokens_per_second
