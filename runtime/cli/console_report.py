"""What the console says of an answer: lines for people, or one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from runtime.cluster.messages import FinishReason, UsedLink  # msgspec resolves the annotations when it encodes
from runtime.planning.values import Mode

if TYPE_CHECKING:
    from runtime.cluster.messages import Finished, MeasuredStage, RankHeld, Ready, RunMeasured

MIB = 1 << 20
"""Shown as MB, as Macs show memory."""


class StageReport(msgspec.Struct, frozen=True):
    """One rank in the JSON report."""

    node: str
    first_layer: int
    last_layer: int
    planned_bytes: int
    held_bytes: int
    predicted_seconds: float | None = None
    """Of its stage for one token of this chat; None if there was no token to measure."""
    measured_seconds: float | None = None


class Report(msgspec.Struct, frozen=True):
    """What ``--json`` prints. ``tokens`` are the ids of the answer, without the one that ended it."""

    model: str
    mode: Mode
    answer: str
    tokens: list[int]
    finish_reason: FinishReason
    ttft_seconds: float
    decode_tokens_per_second: float
    stages: list[StageReport]
    links: list[UsedLink]
    """From each stage to the next and from the last to the first; empty on one machine."""


def times_words(stage: MeasuredStage) -> str:
    """What a token took there, beside what was predicted."""
    measured = "not measured" if stage.measured_seconds is None else f"{stage.measured_seconds * 1000:.2f} ms"
    return f"{measured} (predicted {stage.predicted_seconds * 1000:.2f})"


def report_of(ready: Ready, text: str, tokens: list[int], finished: Finished, measured: RunMeasured | None) -> Report:
    """An answer, and the ranks that gave it."""
    return Report(
        ready.plan.model,
        ready.plan.mode,
        text,
        tokens,
        finished.finish_reason,
        finished.ttft_seconds,
        finished.decode_tokens_per_second,
        [_stage_report(rank, measured) for rank in ready.ranks],
        list(ready.links),
    )


def _stage_report(rank: RankHeld, measured: RunMeasured | None) -> StageReport:
    stage = _stage_of(rank, measured)
    return StageReport(
        rank.node_name,
        rank.first_layer,
        rank.last_layer,
        rank.planned_bytes,
        rank.held_bytes,
        stage.predicted_seconds if stage else None,
        stage.measured_seconds if stage else None,
    )


def _stage_of(rank: RankHeld, measured: RunMeasured | None) -> MeasuredStage | None:
    stages = measured.stages if measured else ()
    return next((stage for stage in stages if rank.node_name in stage.node_names), None)


def node_lines(ready: Ready, measured: RunMeasured | None) -> str:
    """What each node holds and took, and the links between them."""
    width = max(len(rank.node_name) for rank in ready.ranks)
    lines = [""]
    for rank in ready.ranks:
        stage = _stage_of(rank, measured)
        lines.append(
            f"{rank.node_name:<{width}}  layers {rank.first_layer}-{rank.last_layer}  "
            f"holds {rank.held_bytes / MIB:.1f} MB (planned {rank.planned_bytes / MIB:.1f})"
            + (f"  {times_words(stage)}" if stage else "")
        )
    lines += [f"{link.from_node} to {link.to_node}: {link}" for link in ready.links]
    return "\n".join(lines)


def summary(finished: Finished) -> str:
    """How fast it was."""
    return (
        f"\nfirst token after {finished.ttft_seconds:.2f} s, {finished.decode_tokens_per_second:.1f} tok/s, "
        f"{finished.completion_tokens} tokens\n"
    )
