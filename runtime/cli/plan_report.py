"""What ``pomona plan`` says: one JSON object, or a few lines for people."""

from __future__ import annotations

import msgspec

from runtime.planning.advice import size
from runtime.planning.plan import Mode
from runtime.planning.problem import Goal


class PlannedStage(msgspec.Struct, frozen=True):
    """A stage, or in tensor mode one node of the group."""

    node: str
    first_layer: int
    last_layer: int
    weight_bytes: int
    kv_bytes: int
    reserve_bytes: int
    budget_bytes: int
    decode_seconds: float


class UnusedNode(msgspec.Struct, frozen=True):
    """A node that is left out, and why."""

    node: str
    reason: str


class PredictedSpeed(msgspec.Struct, frozen=True):
    """Estimates from tables: nothing was measured."""

    chat_tokens_per_second: float
    requests_tokens_per_second: float
    ttft_seconds_1k: float
    ttft_seconds_16k: float


class PossibleChange(msgspec.Struct, frozen=True):
    """What would make it fit."""

    kind: str
    amount: int
    words: str


class PlanReport(msgspec.Struct, frozen=True):
    """What ``--json`` prints. A split by hand that does not fit has stages and a refusal."""

    fits: bool
    mode: Mode
    goal: Goal
    context_tokens: int
    stages: tuple[PlannedStage, ...] = ()
    unused: tuple[UnusedNode, ...] = ()
    predicted: PredictedSpeed | None = None
    refusal: str | None = None
    changes: tuple[PossibleChange, ...] = ()
    warning: str | None = None


def report_lines(report: PlanReport, predicted: PredictedSpeed, model: str) -> list[str]:
    """The plan for people, stage by stage."""
    lines = [f"{model} in {report.mode} mode, {report.context_tokens} tokens of context"]
    width = max(len(stage.node) for stage in report.stages)
    for stage in report.stages:
        left = stage.budget_bytes - stage.weight_bytes - stage.kv_bytes - stage.reserve_bytes
        lines.append(
            f"  {stage.node:<{width}}  layers {stage.first_layer:>3} to {stage.last_layer:>3}"
            f"  weights {size(stage.weight_bytes)}, cache {size(stage.kv_bytes)}, {size(left)} left"
            f"  {stage.decode_seconds * 1000:.2f} ms"
        )
    lines += [f"  {unused.reason}" for unused in report.unused]
    lines += [f"  {report.warning}"] if report.warning else []
    lines.append(
        f"predicted, not measured: one chat {predicted.chat_tokens_per_second:.1f} tok/s, "
        f"many requests {predicted.requests_tokens_per_second:.1f} tok/s, first token of a 1k prompt after "
        f"{predicted.ttft_seconds_1k:.2f} s, of a 16k prompt after {predicted.ttft_seconds_16k:.1f} s"
    )
    return lines
