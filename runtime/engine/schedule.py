"""How much goes into a step, and how many steps are in flight: pure arithmetic on measured times.

A stage's step takes about ``fixed + per_row * rows`` seconds. Reading the weights is the fixed part, which dominates on
a GPU that waits for memory; arithmetic is the other, which dominates on a CPU and in prefill. Both are fitted while the
model runs, so the schedule suits the machine that it is on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_FORGETTING = 0.95
"""Weight of the past at each new sample: half of what is known is about 14 samples old."""
_PRIOR_WEIGHT = 1e-3

FIRST_CHUNK_TOKENS = 64
"""Before anything was measured."""
CHUNK_TOKENS = (8, 512)
"""Bounds of a prefill chunk: below, a matrix has too few rows; above, memory for activations grows for no gain."""
INTERLEAVED_CHUNK_SECONDS = 0.25
"""While answers are being written, no chunk may hold a stage for longer."""


class StepTimes:
    """Seconds of one stage's step as a line over its rows (sequences in decode, tokens in prefill).

    Least squares with exponential forgetting; until two different row counts were seen, the line goes through the
    origin, as for a stage that computes rather than reads.
    """

    def __init__(self) -> None:
        self._weight = self._rows = self._seconds = self._rows_squared = self._rows_seconds = 0.0

    def add(self, rows: int, seconds: float) -> None:
        """One measured step."""
        self._weight = self._weight * _FORGETTING + 1
        self._rows = self._rows * _FORGETTING + rows
        self._seconds = self._seconds * _FORGETTING + seconds
        self._rows_squared = self._rows_squared * _FORGETTING + rows * rows
        self._rows_seconds = self._rows_seconds * _FORGETTING + rows * seconds

    @property
    def known(self) -> bool:
        """Whether anything was measured."""
        return self._weight > 0

    @property
    def line(self) -> tuple[float, float]:
        """``(fixed, per_row)`` seconds, neither negative."""
        if not self.known:
            return 0.0, 0.0
        mean_rows, mean_seconds = self._rows / self._weight, self._seconds / self._weight
        spread = self._rows_squared / self._weight - mean_rows * mean_rows
        if spread <= _PRIOR_WEIGHT * mean_rows * mean_rows:
            return 0.0, mean_seconds / mean_rows
        slope = (self._rows_seconds / self._weight - mean_rows * mean_seconds) / spread
        slope = min(max(slope, 0.0), mean_seconds / mean_rows)
        return max(0.0, mean_seconds - slope * mean_rows), slope  # rounding may take it below zero

    def seconds(self, rows: float) -> float:
        """What a step of so many rows should take."""
        fixed, per_row = self.line
        return fixed + per_row * rows


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The stages' lines, and what passes between a step's end on one stage and its begin on the next."""

    stages: Sequence[StepTimes]
    hops_seconds: float = 0.0
    """All hops of one step together, the token's way back included."""


def micro_batches(sequence_count: int, pipeline: Pipeline) -> int:
    """Into how many steps in flight to divide ``sequence_count`` sequences that decode; at least 1.

    With ``g`` steps of ``n/g`` rows, a token of each comes once a cycle: the busiest stage does ``g`` steps in it, and
    one step needs all stages and hops. The fewest steps within 2% of the best rate are chosen, because each costs.
    """
    most = min(sequence_count, len(pipeline.stages) + 1) if len(pipeline.stages) > 1 else 1
    cycles = [_cycle_seconds(groups, sequence_count, pipeline) for groups in range(1, most + 1)]
    if not cycles or not min(cycles):
        return max(1, min(sequence_count, len(pipeline.stages)))
    return next(groups for groups, cycle in enumerate(cycles, start=1) if cycle <= 1.02 * min(cycles))


def _cycle_seconds(groups: int, sequence_count: int, pipeline: Pipeline) -> float:
    times = [stage.seconds(sequence_count / groups) for stage in pipeline.stages]
    return max(groups * max(times), sum(times) + pipeline.hops_seconds)


def chunk_tokens(prompt_tokens: int, pipeline: Pipeline, *, interleaved: bool) -> int:
    """How many of ``prompt_tokens`` that are left to prefill together.

    ``p/c`` chunks pass ``n`` stages in ``(p/c + n - 1) (fixed + c * per_token)`` seconds, least for
    ``c = sqrt(p * fixed / ((n - 1) * per_token))``. While answers are being written (``interleaved``), a chunk also
    keeps within :data:`INTERLEAVED_CHUNK_SECONDS` of the slowest stage.
    """
    least, most = CHUNK_TOKENS
    slowest = max(pipeline.stages, key=lambda stage: stage.seconds(most))
    if not slowest.known:
        return min(FIRST_CHUNK_TOKENS, prompt_tokens)
    fixed, per_token = slowest.line
    wanted = float(most)
    waiting_stages = len(pipeline.stages) - 1
    if waiting_stages and per_token > 0:
        wanted = (prompt_tokens * fixed / (waiting_stages * per_token)) ** 0.5
    if interleaved and per_token > 0:
        wanted = min(wanted, (INTERLEAVED_CHUNK_SECONDS - fixed) / per_token)
    return min(prompt_tokens, max(least, min(most, int(wanted))))
