"""Checks one split of one model, prefill and decode, against the whole model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from runtime.check.result import CheckResult, split_of
from runtime.check.runs import run_split, run_whole
from runtime.check.versions import versions

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.check.runs import LogitRows, Run
    from runtime.planning.values import Plan

PREFILL_TOKENS = 96
"""More than a first chunk, so that later chunks meet caches that hold something."""
DECODE_TOKENS = 16
PROMPT = tuple((7 * place * place + 11 * place + 3) % 97 for place in range(PREFILL_TOKENS))
"""Small numbers, which every vocabulary has."""

_TIMES_ROUNDING = 8.0
"""A tensor group rounds its partial sums at every layer, each about as much as one weight is rounded."""


async def check_plan(folder: Path, plan: Plan) -> CheckResult:
    """Run ``plan`` and then the whole model. Raises :class:`PomonaError` if one of them cannot be run."""
    split = await run_split(plan, folder, PROMPT, DECODE_TOKENS)
    is_tensor = any(len(stage.ranks) > 1 for stage in plan.stages)
    whole = await run_whole(folder, split, rounded=is_tensor)
    difference = _difference(split.logits, whole.logits)
    if is_tensor:
        is_near = difference <= _tolerance(whole)
    else:
        is_near = difference == 0 and split.logits.tobytes() == whole.logits.tobytes()
    return CheckResult(
        plan.model,
        split_of(plan),
        plan.mode,
        versions(),
        is_near and split.tokens == whole.tokens,
        None if np.isnan(difference) else difference,
        PREFILL_TOKENS,
        DECODE_TOKENS,
    )


def _tolerance(whole: Run) -> float:
    if whole.rounded_logits is None:
        return 0.0
    return _TIMES_ROUNDING * _difference(whole.logits, whole.rounded_logits)


def _difference(one: LogitRows, other: LogitRows) -> float:
    """NaN if there is one on either side: then nothing is proved. Infinities that agree are equal."""
    if one.shape != other.shape:
        return float("nan")
    with np.errstate(invalid="ignore"):
        apart = np.where(one == other, 0, np.abs(one.astype(np.float64) - other.astype(np.float64)))
    return float(apart.max())
