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
class Run:
    """What was measured of a plan that ran."""

    seconds: Mapping[str, float]
    """Of one token of one chat, by node id; of a group, each rank has its own."""
    context_tokens: int
    """What the chats' caches held on average: less than the plan has room for, so less was read."""


@dataclass(frozen=True, slots=True)
class StageComparison:
    """One stage, for one token of one chat."""

    stage: StagePlan
    """As it would be predicted for the context that was seen."""
    measured_seconds: float | None
    """None if it was not measured."""

    @property
    def error(self) -> float | None:
        """How far the prediction was off, as a part of what was measured; above zero if it was too slow."""
        if self.measured_seconds is None:
            return None
        return (self.stage.decode_seconds - self.measured_seconds) / self.measured_seconds


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


class Rebalancing:
    """A plan that ran, and what there could be instead of it.

    ``nodes`` are those that it was made for, in any order, with the speeds that it was made with.
    """

    def __init__(
        self, layout: ModelLayout, nodes: Sequence[PlanNode], plan: Plan, run: Run, *, links: Sequence[Link] = ()
    ) -> None:
        self._layout, self._plan, self._run, self._links = layout, plan, run, links
        self._pins = _pins_of(plan)
        order = {node_id: place for place, node_id in enumerate(plan.node_ids)}
        self._nodes = sorted(nodes, key=lambda node: order.get(node.node_id, len(order)))

    def stages(self) -> tuple[StageComparison, ...]:
        """Every stage beside what was measured."""
        predicted = self._ran(self._nodes, self._run.context_tokens)
        stages = predicted.stages if predicted is not None else self._plan.stages
        return tuple(StageComparison(stage, self._measured(stage)) for stage in stages)

    def proposal(self) -> Proposal | None:
        """The best plan with nodes as fast as they were; None if none fits any more, and in tensor mode.

        The plan's goal and its tensor groups are kept; a split by hand is balanced for one chat.
        """
        if self._plan.mode == "tensor":
            return None
        factors = {
            rank.node_id: compared.stage.decode_seconds / compared.measured_seconds
            for compared in self.stages()
            if compared.measured_seconds and compared.stage.decode_seconds > 0
            for rank in compared.stage.ranks
        }
        known = [replace(node, speed=_corrected(node.speed, factors.get(node.node_id))) for node in self._nodes]
        goal = self._plan.goal or "chat"
        now = self._ran(known, self._plan.context_tokens)
        then = make_plan(
            self._layout,
            known,
            goal=goal,
            context_tokens=self._plan.context_tokens,
            links=self._links,
            pins=self._pins,
        )
        if now is None or not isinstance(then, Plan):
            return None
        return Proposal(then, _rate(now, goal), _rate(then, goal))

    def _ran(self, nodes: Sequence[PlanNode], context_tokens: int) -> Plan | None:
        """The split that ran, over nodes of these speeds; None if its nodes are not all there."""
        if self._plan.mode == "tensor":
            nodes = [node for node in nodes if node.node_id in self._plan.node_ids]
            made = make_plan(self._layout, nodes, mode="tensor", context_tokens=context_tokens, links=self._links)
        else:
            counts = {stage.ranks[0].node_id: stage.layer_count for stage in self._plan.stages}
            split = [counts.get(node.node_id, 0) for node in nodes]
            made = make_plan(
                self._layout, nodes, split, context_tokens=context_tokens, links=self._links, pins=self._pins
            )
        return made if isinstance(made, Plan) else made.draft

    def _measured(self, stage: StagePlan) -> float | None:
        seconds = self._run.seconds
        found = [seconds[rank.node_id] for rank in stage.ranks if seconds.get(rank.node_id, 0.0) > 0]
        return max(found, default=None)


def _pins_of(plan: Plan) -> Pins:
    groups = tuple(tuple(rank.node_id for rank in stage.ranks) for stage in plan.stages if len(stage.ranks) > 1)
    return replace(NO_PINS, groups=groups)


def _corrected(speed: NodeSpeed, factor: float | None) -> NodeSpeed:
    if factor is None:
        return speed
    return NodeSpeed(
        speed.bytes_per_second * factor,
        speed.flops_per_second * factor,
        speed.layer_overhead_seconds / factor,
        "measured",
        speed.flops_source,
        None if speed.cache_bytes_per_second is None else speed.cache_bytes_per_second * factor,
    )


def _rate(plan: Plan, goal: str) -> float:
    assert plan.predicted is not None, "the planner predicts"
    if goal == "requests":
        return plan.predicted.requests_tokens_per_second
    return plan.predicted.chat_tokens_per_second
