"""The one function that turns a layout, nodes and a split into a plan.

The preview while a boundary is dragged, the command line and the launch all call :func:`make_plan`, so that
what a person saw is what starts.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.models.layout import ModelLayout

Mode = Literal["pipeline", "tensor"]


class PlanNode(msgspec.Struct, frozen=True):
    """What the planner has to know of a node."""

    node_id: str
    name: str
    budget_bytes: int
    """Memory that a model may take on this node."""


class RankPlan(msgspec.Struct, frozen=True):
    """One worker process: its node and the weights that it will hold."""

    node_id: str
    node_name: str
    weight_bytes: int


class StagePlan(msgspec.Struct, frozen=True):
    """A run of layers and the ranks that compute it: one rank, or a tensor-parallel group."""

    first_layer: int
    last_layer: int
    """Inclusive."""
    ranks: tuple[RankPlan, ...]

    @property
    def layer_count(self) -> int:
        return self.last_layer - self.first_layer + 1


class Plan(msgspec.Struct, frozen=True):
    """Every layer has exactly one stage, in model order. Checked when a plan is made and when one is decoded."""

    model: str
    mode: Mode
    layer_count: int
    stages: tuple[StagePlan, ...]

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("a plan without stages")
        next_layer = 0
        for stage in self.stages:
            if stage.first_layer != next_layer or stage.last_layer < stage.first_layer or not stage.ranks:
                raise ValueError(f"stages of a plan must follow each other without gaps: {self.stages}")
            next_layer = stage.last_layer + 1
        if next_layer != self.layer_count:
            raise ValueError(f"a plan for {self.layer_count} layers ends at layer {next_layer}")

    @property
    def rank_count(self) -> int:
        return sum(len(stage.ranks) for stage in self.stages)


class Shortfall(msgspec.Struct, frozen=True):
    """A node that would have to hold more than its budget."""

    node_id: str
    node_name: str
    missing_bytes: int


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no plan, in one sentence for a person."""

    reason: str
    shortfalls: tuple[Shortfall, ...] = ()


def even_split(layer_count: int, node_count: int) -> tuple[int, ...]:
    """Layers per node, as equal as they can be; the first of at least one node take the remainder."""
    whole, remainder = divmod(layer_count, node_count)
    return tuple(whole + (index < remainder) for index in range(node_count))


def stage_weight_bytes(layout: ModelLayout, first_layer: int, end_layer: int, rank_count: int = 1) -> int:
    """Weights of layers ``[first_layer, end_layer)``, with the embedding on the first stage, norm and head on the last.

    A tied embedding is counted once when one stage is both first and last. Of a stage of several ranks, each holds
    an equal share of what can be divided, and all of the rest (norms, routers, embeddings).
    """
    first, last = first_layer == 0, end_layer == len(layout.layer_bytes)
    total = sum(layout.layer_bytes[first_layer:end_layer])
    divided = sum(layout.layer_divided_bytes[first_layer:end_layer])
    if first:
        total += layout.embedding_bytes
    if last:
        total += layout.head_bytes
        divided += layout.head_divided_bytes
        if layout.tied_embedding and not first:
            total += layout.embedding_bytes - layout.first_alone_bytes
    return total - divided + -(-divided // rank_count)


def make_plan(
    layout: ModelLayout, nodes: Sequence[PlanNode], split: Sequence[int] | None = None, mode: Mode = "pipeline"
) -> Plan | Refusal:
    """Plan ``layout`` over ``nodes``, which come in model order.

    ``split`` gives the number of layers for each node; 0 leaves that node out; None means even. Tensor mode takes
    no split: every node holds its share of every layer.
    """
    if refusal := _refuse_inputs(layout, nodes):
        return refusal
    if mode == "tensor":
        return _tensor_plan(layout, nodes, split)
    layer_count = len(layout.layer_bytes)
    if split is None:
        split = even_split(layer_count, len(nodes))
    if refusal := _refuse_split(split, layer_count, len(nodes), layout.name):
        return refusal
    if layout.pipeline_refusal and sum(count > 0 for count in split) > 1:
        return Refusal(layout.pipeline_refusal)
    edges = pairwise(accumulate(split, initial=0))
    stages = tuple(
        StagePlan(first, end - 1, (RankPlan(node.node_id, node.name, stage_weight_bytes(layout, first, end)),))
        for node, (first, end) in zip(nodes, edges, strict=True)
        if end > first
    )
    return _within_budget(Plan(layout.name, mode, layer_count, stages), nodes)


def _refuse_inputs(layout: ModelLayout, nodes: Sequence[PlanNode]) -> Refusal | None:
    if not nodes:
        return Refusal("There is no node to run the model on. Start Pomona on at least one Mac.")
    if not layout.layer_bytes:
        return Refusal(f"{layout.name} has no layers to share. Choose another model.")
    seen: set[str] = set()
    for node in nodes:
        if node.node_id in seen:
            return Refusal(f"{node.name} is named twice: give each node once.")
        seen.add(node.node_id)
    return None


def _refuse_split(split: Sequence[int], layer_count: int, node_count: int, model: str) -> Refusal | None:
    shown = ",".join(map(str, split))
    if len(split) != node_count:
        return Refusal(
            f"The split {shown} names {_count(len(split), 'part')}, but there are {_count(node_count, 'node')}: "
            "give one number of layers for each node (0 leaves a node out)."
        )
    if any(count < 0 for count in split):
        return Refusal(f"The split {shown} has a negative number of layers.")
    if sum(split) != layer_count:
        return Refusal(
            f"The split {shown} adds up to {sum(split)} layers, but {model} has {layer_count}: "
            "change the numbers so that every layer has one node."
        )
    return None


def _tensor_plan(layout: ModelLayout, nodes: Sequence[PlanNode], split: Sequence[int] | None) -> Plan | Refusal:
    if split is not None:
        return Refusal("Tensor mode shares every layer among all nodes, so it takes no split: leave the split out.")
    if refusal := refuse_tensor(layout, len(nodes)):
        return refusal
    layer_count = len(layout.layer_bytes)
    share = stage_weight_bytes(layout, 0, layer_count, len(nodes))
    ranks = tuple(RankPlan(node.node_id, node.name, share) for node in nodes)
    return _within_budget(Plan(layout.name, "tensor", layer_count, (StagePlan(0, layer_count - 1, ranks),)), nodes)


def refuse_tensor(layout: ModelLayout, rank_count: int) -> Refusal | None:
    """Why ``rank_count`` ranks cannot share each layer, or None."""
    if rank_count == 1:
        return None
    most = len(layout.tensor_refusals) + 1
    if rank_count > most:
        return Refusal(f"Tensor mode shares layers among at most {most} nodes; choose fewer nodes or pipeline mode.")
    reason = layout.tensor_refusals[rank_count - 2]
    return Refusal(reason) if reason else None


def _within_budget(plan: Plan, nodes: Sequence[PlanNode]) -> Plan | Refusal:
    budgets = {node.node_id: node.budget_bytes for node in nodes}
    shortfalls = tuple(
        Shortfall(rank.node_id, rank.node_name, rank.weight_bytes - budgets[rank.node_id])
        for stage in plan.stages
        for rank in stage.ranks
        if rank.weight_bytes > budgets[rank.node_id]
    )
    if not shortfalls:
        return plan
    worst = max(shortfalls, key=lambda shortfall: shortfall.missing_bytes)
    return Refusal(
        f"{worst.node_name} lacks {_size(worst.missing_bytes)} for its part of {plan.model}{_advice(plan, nodes)}",
        shortfalls,
    )


def _advice(plan: Plan, nodes: Sequence[PlanNode]) -> str:
    needed = sum(rank.weight_bytes for stage in plan.stages for rank in stage.ranks)
    budget = sum(node.budget_bytes for node in nodes)
    if needed > budget:
        together = f", and all nodes together lack {_size(needed - budget)}" if len(nodes) > 1 else ""
        return f"{together}; add a node or choose a smaller model."
    if plan.mode == "tensor":
        return "; tensor mode gives every node the same, so use pipeline mode or leave that node out."
    return "; move layers to another node."


def _size(count: int) -> str:
    """``count`` bytes for a person, never rounded down."""
    for unit, name, digits in ((2**30, "GB", 1), (2**20, "MB", 0)):
        steps = 10**digits
        if count >= unit:
            return f"{-(-count * steps // unit) / steps:.{digits}f} {name}"
    return f"{max(1, -(-count // 2**10))} kB"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
