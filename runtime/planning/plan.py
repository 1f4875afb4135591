"""The one function that turns a layout, nodes and what a person wants into a plan.

The preview while a boundary is dragged, the command line and the launch all call :func:`make_plan`, so that
what a person saw is what starts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from runtime.planning.advice import NoFit
from runtime.planning.evaluation import evaluate
from runtime.planning.mixed import OtherWays, needed_places, predicted_speed
from runtime.planning.optimum import best_split, fits, given_split
from runtime.planning.places import NO_PINS, Link, Pins, Place, PlanNode, split_problem
from runtime.planning.refusals import refuse_inputs, refuse_split, refuse_tensor
from runtime.planning.shares import even_split, stage_weight_bytes
from runtime.planning.values import (
    Change,
    Goal,
    GroupOffer,
    Mode,
    Plan,
    PredictedSpeed,
    RankPlan,
    Refusal,
    Shortfall,
    StagePlan,
    UnusedNode,
    default_context_tokens,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.models.layout import ModelLayout
    from runtime.planning.evaluation import Split
    from runtime.planning.problem import SplitProblem

__all__ = [
    "NO_PINS",
    "Change",
    "Goal",
    "GroupOffer",
    "Link",
    "Mode",
    "Pins",
    "Plan",
    "PlanNode",
    "PredictedSpeed",
    "RankPlan",
    "Refusal",
    "Shortfall",
    "StagePlan",
    "UnusedNode",
    "default_context_tokens",
    "even_split",
    "make_plan",
    "refuse_tensor",
    "stage_weight_bytes",
]


def make_plan(
    layout: ModelLayout,
    nodes: Sequence[PlanNode],
    split: Sequence[int] | None = None,
    mode: Mode = "pipeline",
    *,
    goal: Goal = "even",
    context_tokens: int | None = None,
    links: Sequence[Link] = (),
    pins: Pins = NO_PINS,
) -> Plan | Refusal:
    """Plan ``layout`` over ``nodes``.

    ``split`` gives the number of layers for each node, which come in model order; 0 leaves that node out, and a tensor
    group has its layers at its first node. Without it the plan is the best for ``goal``, in whatever order. Tensor mode
    takes no split: every node holds its share of every layer. ``context_tokens`` bounds prompt and answer together.
    Links that are not given count as ``places.UNKNOWN_LINK``.
    """
    context = default_context_tokens(layout) if context_tokens is None else context_tokens
    if refusal := refuse_inputs(layout, nodes, context, pins):
        return refusal
    maker = _Maker(layout, nodes, links, context, pins)
    if mode == "tensor":
        return maker.tensor(split)
    return maker.best(goal) if split is None else maker.given(split)


class _Maker:
    """A plan for one layout and its nodes, whatever is asked for."""

    def __init__(
        self, layout: ModelLayout, nodes: Sequence[PlanNode], links: Sequence[Link], context: int, pins: Pins
    ) -> None:
        self.layout, self.nodes, self.links, self.context, self.pins = layout, nodes, links, context, pins
        self.known = {node.node_id: node for node in nodes}

    def given(self, split: Sequence[int]) -> Plan | Refusal:
        """The split that a person has set."""
        if refusal := refuse_split(split, len(self.layout.layer_bytes), len(self.nodes), self.layout.name):
            return refusal
        grouped = {node_id: group[0] for group in self.pins.groups for node_id in group[1:]}
        for node, count in zip(self.nodes, split, strict=True):
            if count and (first := grouped.get(node.node_id)):
                return Refusal(
                    f"{node.name} shares the layers of {self.known[first].name}, so give it 0 layers of its own."
                )
        places = self._places(self.nodes)
        kept = [count for node, count in zip(self.nodes, split, strict=True) if node.node_id not in grouped]
        if self.layout.pipeline_refusal and sum(count > 0 for count in kept) > 1:
            return Refusal(self.layout.pipeline_refusal)
        if refusal := self._refuse_groups():
            return refusal
        found, refused = given_split(self._problem(places), kept)
        unused = [
            _unused(node, "the split gives it 0")
            for place, count in zip(places, kept, strict=True)
            for node in place.members
            if not count
        ]
        plan = self._plan(found, places, None, unused)
        return self._refusal(refused, places, plan) if refused else plan

    def best(self, goal: Goal) -> Plan | Refusal:
        """The best split for a goal."""
        taking = [node for node in self.nodes if node.node_id not in self.pins.left_out]
        left = [_unused(node, "you left it out") for node in self.nodes if node.node_id in self.pins.left_out]
        if not taking:
            return Refusal("Every node is left out: put at least one of them back in.")
        if refusal := self._refuse_groups():
            return refusal
        places = self._places(taking)
        needed = needed_places(places, self.pins) | {at for at, place in enumerate(places) if len(place.members) > 1}
        problem = self._problem(places)
        parts = len(self.layout.layer_bytes) - len(problem.model.forbidden_cuts)
        if self.layout.pipeline_refusal and (len(needed) > 1 or (goal == "even" and len(places) > 1)):
            return Refusal(self.layout.pipeline_refusal)
        if len(needed) > parts:
            return Refusal(f"{self.layout.name} has {parts} parts for {len(needed)} nodes; let fewer take part.")
        found = best_split(problem, goal, needed)
        if isinstance(found, NoFit):
            if self.layout.pipeline_refusal and len(places) > 1:
                return Refusal(f"{found.reason.removesuffix('.')}. {self.layout.pipeline_refusal}")
            return self._refusal(found, places, self._plan(found.split, places, goal, left))
        unused = [
            UnusedNode(node.node_id, node.name, one.reason) for one in found.unused for node in places[one.node].members
        ]
        plan = self._plan(found.split, places, goal, [*unused, *left])
        ways = OtherWays(self.layout, taking, self.links, self.context, self.pins, goal)
        return msgspec.structs.replace(
            plan, offer=ways.better_together(found.split), warning=ways.better_apart(found.split)
        )

    def tensor(self, split: Sequence[int] | None) -> Plan | Refusal:
        """All nodes as one group."""
        if split is not None:
            return Refusal("Tensor mode shares every layer among all nodes, so it takes no split: leave the split out.")
        taking = [node for node in self.nodes if node.node_id not in self.pins.left_out]
        left = [_unused(node, "you left it out") for node in self.nodes if node.node_id in self.pins.left_out]
        if not taking:
            return Refusal("Every node is left out: put at least one of them back in.")
        if refusal := refuse_tensor(self.layout, len(taking)):
            return refusal
        places = [Place(tuple(taking))]
        found, refused = given_split(self._problem(places), [len(self.layout.layer_bytes)])
        plan = self._plan(found, places, None, left, "tensor")
        if refused is None:
            return msgspec.structs.replace(plan, warning=self._slow_links(found, taking))
        changes = [change for change in refused.changes if change.kind != "node"]
        if len(taking) > 1 and fits(self._problem([Place((node,)) for node in taking])):
            changes.append(Change("mode", 0, "use pipeline mode"))
        return self._refusal(replace(refused, changes=tuple(changes)), places, plan)

    def _slow_links(self, group: Split, nodes: Sequence[PlanNode]) -> str | None:
        """A warning where the links make the group slower than its fastest node would be alone."""
        alone = [self._problem([Place((node,))]) for node in nodes]
        rates = [evaluate(problem, ((0, len(self.layout.layer_bytes)),)).predicted for problem in alone]
        best = max(rates, key=lambda rate: rate.chat_tokens_per_second)
        together, single = group.predicted.chat_tokens_per_second, best.chat_tokens_per_second
        if single <= together:
            return None
        name = nodes[rates.index(best)].name
        return (
            f"The links make this slower than one node: {together:.1f} tok/s, {single:.1f} on {name} alone "
            "if it had the room."
        )

    def _places(self, nodes: Sequence[PlanNode]) -> list[Place]:
        grouped = {node_id: group for group in self.pins.groups for node_id in group}
        places = []
        for node in nodes:
            group = grouped.get(node.node_id, (node.node_id,))
            if group[0] == node.node_id:
                places.append(Place(tuple(self.known[node_id] for node_id in group)))
        return places

    def _problem(self, places: Sequence[Place]) -> SplitProblem:
        return split_problem(self.layout, places, self.links, self.context)

    def _refuse_groups(self) -> Refusal | None:
        refusals = (refuse_tensor(self.layout, len(group)) for group in self.pins.groups)
        return next((refusal for refusal in refusals if refusal), None)

    def _refusal(self, refused: NoFit, places: Sequence[Place], plan: Plan) -> Refusal:
        short = tuple(
            Shortfall(rank.node_id, rank.node_name, -rank.room_bytes)
            for stage in plan.stages
            for rank in stage.ranks
            if rank.room_bytes < 0
        )
        changes = tuple(self._over_nodes(change, places) for change in refused.changes)
        return Refusal(refused.reason, short, changes, plan)

    def _over_nodes(self, change: Change, places: Sequence[Place]) -> Change:
        """A change whose layers are given for places, with those of every node."""
        counts = {place.members[0].node_id: count for place, count in zip(places, change.counts, strict=False)}
        every = tuple(counts.get(node.node_id, 0) for node in self.nodes) if counts else ()
        return Change(change.kind, change.amount, change.words, every)

    def _plan(
        self,
        split: Split,
        places: Sequence[Place],
        goal: Goal | None,
        unused: Sequence[UnusedNode],
        mode: Mode = "pipeline",
    ) -> Plan:
        stages = []
        for stage in split.stages:
            held = stage.memory
            ranks = tuple(
                RankPlan(
                    node.node_id,
                    node.name,
                    held.weight_bytes,
                    held.kv_bytes,
                    node.reserved_bytes,
                    node.budget_bytes,
                )
                for node in places[stage.node].members
            )
            source = split.node_of(stage).speed.source
            stages.append(StagePlan(stage.first_layer, stage.last_layer, ranks, stage.decode_seconds, source))
        return Plan(
            self.layout.name,
            mode,
            len(self.layout.layer_bytes),
            tuple(stages),
            self.context,
            goal,
            predicted_speed(split),
            tuple(unused),
        )


def _unused(node: PlanNode, why: str) -> UnusedNode:
    return UnusedNode(node.node_id, node.name, f"{node.name} not used: {why}")
