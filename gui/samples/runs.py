"""Made-up messages of a model that is loaded, answers and is measured."""

from __future__ import annotations

from math import sin
from typing import TYPE_CHECKING

from runtime.cluster.messages import (
    Finished,
    LoadProgress,
    MeasuredStage,
    RankHeld,
    Ready,
    RunMeasured,
    StageTimes,
    Statistics,
    Throughput,
)
from runtime.planning.from_resources import plan_nodes
from runtime.planning.plan import Plan, make_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from resources.node import NodeResources
    from runtime.cluster.messages import LoadPhase
    from runtime.models.layout import ModelLayout

_DISK_BYTES_PER_SECOND = 3e9


def plan_over(layout: ModelLayout, nodes: Sequence[NodeResources], counts: tuple[int, ...]) -> Plan:
    """A plan that fits."""
    made = make_plan(layout, plan_nodes(layout, nodes), counts)
    assert isinstance(made, Plan)
    return made


def loading(plan: Plan, shares: Sequence[tuple[LoadPhase, float]]) -> Iterator[LoadProgress]:
    """One progress message per rank, with its phase and the part of its bytes that is loaded."""
    for index, (rank, (phase, share)) in enumerate(zip(plan.ranks, shares, strict=True)):
        total, loaded = rank.weight_bytes, round(rank.weight_bytes * share)
        rate = _DISK_BYTES_PER_SECOND if phase == "loading" else 0.0
        left = (total - loaded) / rate if rate else None
        yield LoadProgress(index, rank.node_id, rank.node_name, phase, loaded, total, rate, left)


def ready(plan: Plan) -> Ready:
    """Every rank holds a little more than was planned."""
    held = tuple(
        RankHeld(
            index,
            rank.node_id,
            rank.node_name,
            stage.first_layer,
            stage.last_layer,
            rank.weight_bytes,
            round(rank.weight_bytes * 1.01),
        )
        for index, (stage, rank) in enumerate((stage, rank) for stage in plan.stages for rank in stage.ranks)
    )
    return Ready(plan, held)


def run_measured(plan: Plan, then: Plan | None = None, errors: Sequence[float] = (0.04, -0.18, 0.07)) -> RunMeasured:
    """Stages that took somewhat more or less than predicted; ``then`` is the split that follows."""
    stages = tuple(
        MeasuredStage(
            tuple(rank.node_name for rank in stage.ranks),
            stage.first_layer,
            stage.last_layer,
            stage.decode_seconds,
            stage.decode_seconds * (1 + error),
        )
        for stage, error in zip(plan.stages, errors, strict=False)
    )
    now = near(plan)
    if then is None:
        words = f"Another split gains nothing: this one reaches {now:.1f} tok/s by what was measured."
        return RunMeasured(stages, words)
    layers = ", ".join(f"{stage.layer_count} layers on {stage.ranks[0].node_name}" for stage in then.stages)
    words = f"By what was measured, {layers} would give {1.23 * now:.1f} tok/s instead of {now:.1f}: 23% more."
    return RunMeasured(stages, words, then, now, 1.23 * now)


def throughput(seconds: float, mean: float = 31.0) -> Iterator[Throughput]:
    """Ten samples a second of an answer that is not quite even."""
    for index in range(round(seconds * 10)):
        time = index / 10
        ramp = min(time / 1.0, 1.0)
        rate = ramp * mean * (1 + 0.07 * sin(time * 1.1) + 0.03 * sin(time * 7.3))
        yield Throughput(time, rate, 0.0, 1)


def counters(plan: Plan, seconds: float, mean: float = 31.0) -> Iterator[Statistics]:
    """Counters of an answer, ten times a second: each stage computes for its layers and waits for the others."""
    token = 1 / mean
    for index in range(round(seconds * 10)):
        steps = round(index / 10 * mean)
        stages = []
        for rank, stage in enumerate(plan.stages):
            busy = token * 0.9 * stage.layer_count / plan.layer_count
            stages.append(
                StageTimes(
                    rank,
                    stage.ranks[0].node_id,
                    steps,
                    steps,
                    steps * busy,
                    steps * (token - busy - 0.0008),
                    steps * 0.0008,
                    steps * 2304,
                    min(steps * 23040, stage.ranks[0].kv_bytes),
                    1,
                )
            )
        yield Statistics(index / 10, tuple(stages))


def finished(request_id: str, tokens: int = 57, tokens_per_second: float = 31.2) -> Finished:
    """The end of an answer."""
    return Finished(request_id, "stop", 42, tokens, 0.41, tokens_per_second)


def near(plan: Plan) -> float:
    """Tokens per second of a session that runs about as it was predicted."""
    return 0.94 * plan.predicted.chat_tokens_per_second if plan.predicted is not None else 31.0
