"""What ``pomona plan`` says: one JSON object, or a few lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from runtime.planning.advice import size
from runtime.planning.cost import Source  # msgspec resolves the annotations when it encodes
from runtime.planning.refusals import TensorSize
from runtime.planning.values import Change, Goal, GroupOffer, Mode, Plan, PredictedSpeed

if TYPE_CHECKING:
    from runtime.planning.values import RankPlan, Refusal, StagePlan


class PlannedStage(msgspec.Struct, frozen=True):
    """A stage, or one node of a stage whose nodes share every layer."""

    node: str
    first_layer: int
    last_layer: int
    weight_bytes: int
    kv_bytes: int
    reserve_bytes: int
    budget_bytes: int
    decode_seconds: float
    source: Source


class LeftOutNode(msgspec.Struct, frozen=True):
    """A node that is left out, and why."""

    node: str
    reason: str


class PlanReport(msgspec.Struct, frozen=True):
    """What ``--json`` prints. A split that does not fit has stages and a refusal."""

    fits: bool
    mode: Mode
    goal: Goal
    context_tokens: int = 0
    stages: tuple[PlannedStage, ...] = ()
    unused: tuple[LeftOutNode, ...] = ()
    predicted: PredictedSpeed | None = None
    refusal: str | None = None
    changes: tuple[Change, ...] = ()
    warning: str | None = None
    offer: GroupOffer | None = None
    """Tensor groups with which the goal is reached better; ``groups`` are ids, which imagined nodes have none of."""
    tensor_sizes: tuple[TensorSize, ...] = ()
    """In tensor mode: which numbers of these nodes can share the layers."""


def plan_report(made: Plan | Refusal, mode: Mode, goal: Goal, sizes: tuple[TensorSize, ...] = ()) -> PlanReport:
    """``made`` as one object."""
    plan = made if isinstance(made, Plan) else made.draft
    refusal = None if isinstance(made, Plan) else made.reason
    changes = () if isinstance(made, Plan) else made.changes
    if plan is None:
        return PlanReport(False, mode, goal, refusal=refusal, changes=changes, tensor_sizes=sizes)
    return PlanReport(
        fits=refusal is None,
        mode=mode,
        goal=goal,
        context_tokens=plan.context_tokens,
        stages=tuple(_stage(stage, rank) for stage in plan.stages for rank in stage.ranks),
        unused=tuple(LeftOutNode(node.node_name, node.reason) for node in plan.unused),
        predicted=plan.predicted,
        refusal=refusal,
        changes=changes,
        warning=plan.warning,
        offer=plan.offer,
        tensor_sizes=sizes,
    )


def _stage(stage: StagePlan, rank: RankPlan) -> PlannedStage:
    return PlannedStage(
        rank.node_name,
        stage.first_layer,
        stage.last_layer,
        rank.weight_bytes,
        rank.kv_bytes,
        rank.reserve_bytes,
        rank.budget_bytes,
        stage.decode_seconds,
        stage.source,
    )


def report_lines(report: PlanReport, predicted: PredictedSpeed, model: str) -> list[str]:
    """The plan for people, stage by stage."""
    lines = [f"{model} in {report.mode} mode, {report.context_tokens} tokens of context"]
    width = max(len(stage.node) for stage in report.stages)
    for stage in report.stages:
        left = stage.budget_bytes - stage.weight_bytes - stage.kv_bytes - stage.reserve_bytes
        lines.append(
            f"  {stage.node:<{width}}  layers {stage.first_layer:>3} to {stage.last_layer:>3}"
            f"  weights {size(stage.weight_bytes)}, cache {size(stage.kv_bytes)}, reserve {size(stage.reserve_bytes)}, "
            f"{size(left)} left  {stage.decode_seconds * 1000:.2f} ms ({stage.source})"
        )
    lines += [f"  {unused.reason}" for unused in report.unused]
    lines += [f"  {report.warning}"] if report.warning else []
    lines += [f"  faster with {report.offer.words} (--group)"] if report.offer else []
    lines.append(
        f"predicted, not measured: one chat {predicted.chat_tokens_per_second:.1f} tok/s, "
        f"many requests {predicted.requests_tokens_per_second:.1f} tok/s, first token of a 1k prompt after "
        f"{predicted.ttft_seconds_1k:.2f} s, of a 16k prompt after {predicted.ttft_seconds_16k:.1f} s"
    )
    return lines
