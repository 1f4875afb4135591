"""The rows of bars in the live pane, as frozen values with every word in place. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from gui.formatting import bytes_words, context_words, layers_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gui.plots.history import StageRate
    from runtime.cluster.messages import RankHeld, RunMeasured
    from runtime.planning.plan import Plan, StagePlan


class Part(Enum):
    """What a piece of a bar stands for; its words name it where colour does not."""

    COMPUTE = "compute"
    WAIT = "wait"
    HOP = "hop"
    WEIGHTS = "weights"
    CACHE = "cache"


@dataclass(frozen=True, slots=True)
class BarRow:
    """One node. The pieces are fractions of the bar's length, from the left."""

    name: str
    beside: str
    """What follows the name, dim."""
    parts: tuple[tuple[Part, float], ...]
    words: str
    """On the right, above the bar."""
    mark: float | None = None
    """Where the thin bar under it ends: what was predicted or planned."""
    mark_words: str = ""
    tooltip: str = ""
    node_id: str = ""


def stage_rows(plan: Plan, rates: Sequence[StageRate], run: RunMeasured | None = None) -> tuple[BarRow, ...]:
    """What a token took on each stage, all drawn to one scale, beside what was predicted of computing it.

    The prediction is for as much context as was seen in ``run``; before there is one, for all that the plan has.
    """
    measured = {rate.node_id: rate for rate in rates}
    seen = {(one.first_layer, one.last_layer): one.predicted_seconds for one in run.stages} if run is not None else {}
    spans = [(stage.first_layer, stage.last_layer) for stage in plan.stages]
    of_run = set(spans) == seen.keys()
    predicted = [seen[span] if of_run else stage.decode_seconds for span, stage in zip(spans, plan.stages, strict=True)]
    longest = max([*(rate.total_seconds for rate in rates), *predicted, 1e-9])
    when = "" if of_run or not plan.context_tokens else f" at {context_words(plan.context_tokens)}"
    return tuple(
        _stage_row(stage, measured.get(stage.ranks[0].node_id), seconds, when, longest)
        for stage, seconds in zip(plan.stages, predicted, strict=True)
    )


def _stage_row(stage: StagePlan, rate: StageRate | None, predicted_seconds: float, when: str, longest: float) -> BarRow:
    names = " + ".join(rank.node_name for rank in stage.ranks)
    span = layers_words(stage.first_layer, stage.last_layer)
    mark = predicted_seconds / longest if predicted_seconds else None
    predicted = f"predicted {_ms(predicted_seconds)}{when}" if predicted_seconds else ""
    if rate is None:
        return BarRow(names, span, (), "no step yet", mark, predicted, f"{names}: {predicted}", stage.ranks[0].node_id)
    parts = (
        (Part.COMPUTE, rate.compute_seconds / longest),
        (Part.WAIT, rate.wait_seconds / longest),
        (Part.HOP, rate.hop_seconds / longest),
    )
    tooltip = (
        f"{names}, {span}\nFor one step: computes {_ms(rate.compute_seconds)}, waits {_ms(rate.wait_seconds)}, "
        f"sends {_ms(rate.hop_seconds)}\nPredicted to compute: {_ms(predicted_seconds)}{when}"
    )
    words = f"computes {_ms(rate.compute_seconds)}"
    return BarRow(names, span, parts, words, mark, predicted, tooltip, rate.node_id)


def memory_rows(plan: Plan, held: Sequence[RankHeld], kv_bytes: Mapping[str, int]) -> tuple[BarRow, ...]:
    """What each rank holds and its caches take, of what the model may take on its node."""
    rows = []
    by_node = {one.node_id: one for one in held}
    for stage in plan.stages:
        for rank in stage.ranks:
            weights = by_node[rank.node_id].held_bytes if rank.node_id in by_node else rank.weight_bytes
            cache = kv_bytes.get(rank.node_id, 0)
            limit = max(rank.budget_bytes, weights + cache, 1)
            words = f"{bytes_words(weights)} weights · {bytes_words(cache)} of {bytes_words(rank.kv_bytes)} cache"
            rows.append(
                BarRow(
                    rank.node_name,
                    layers_words(stage.first_layer, stage.last_layer),
                    ((Part.WEIGHTS, weights / limit), (Part.CACHE, cache / limit)),
                    words,
                    min((rank.weight_bytes + rank.kv_bytes) / limit, 1.0),
                    f"planned {bytes_words(rank.weight_bytes + rank.kv_bytes)} of {bytes_words(limit)}",
                    f"{rank.node_name}\n{words}",
                    rank.node_id,
                )
            )
    return tuple(rows)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms" if seconds < 0.01 else f"{seconds * 1000:.1f} ms"
