"""What a session measured in the last five minutes: for the stages' bars, and to be exported. No Qt."""

from __future__ import annotations

import csv
import io
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gui.plots.series import KEPT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.cluster.messages import StageTimes, Statistics, Throughput

MEAN_SECONDS = 1.0
"""Counters are compared with those of so long ago."""


@dataclass(frozen=True, slots=True)
class StageRate:
    """What one step took on a rank, as the mean of a second."""

    node_id: str
    compute_seconds: float
    wait_seconds: float
    hop_seconds: float
    kv_bytes: int

    @property
    def total_seconds(self) -> float:
        return self.compute_seconds + self.wait_seconds + self.hop_seconds


class History:
    """Samples in the order of time; an older one begins a new session."""

    def __init__(self) -> None:
        self._speeds: deque[Throughput] = deque()
        self._counters: deque[Statistics] = deque()
        self._rates: tuple[StageRate, ...] = ()

    def __len__(self) -> int:
        return len(self._speeds)

    def add_speed(self, sample: Throughput) -> None:
        """The rates of now."""
        if self._speeds and sample.time_seconds < self._speeds[-1].time_seconds:
            self.clear()
        self._speeds.append(sample)
        while self._speeds[0].time_seconds < sample.time_seconds - KEPT_SECONDS:
            self._speeds.popleft()

    def add_counters(self, sample: Statistics) -> None:
        """The counters of now. Those of other workers than before begin anew."""
        if self._counters and not _follows(self._counters[-1], sample):
            self._counters.clear()
        self._counters.append(sample)
        while self._counters[0].time_seconds < sample.time_seconds - KEPT_SECONDS:
            self._counters.popleft()
        self._rates = self._newest_rates() or self._rates

    def clear(self) -> None:
        """Forget everything."""
        self._speeds.clear()
        self._counters.clear()
        self._rates = ()

    @property
    def rates(self) -> tuple[StageRate, ...]:
        """Of each rank, from the newest second in which every rank made a step."""
        return self._rates

    @property
    def kv_bytes(self) -> dict[str, int]:
        """What each node's caches take now, by its id."""
        return {stage.node_id: stage.kv_bytes for stage in self._counters[-1].stages} if self._counters else {}

    def csv(self, names: Mapping[str, str]) -> str:
        """A table with one row per sample; ``names`` has the nodes' by id. Times are milliseconds per step."""
        ids = [stage.node_id for stage in self._counters[-1].stages] if self._counters else []
        text = io.StringIO()
        writer = csv.writer(text)
        head = ["time_seconds", "decode_tokens_per_second", "prefill_tokens_per_second", "active_requests"]
        for node_id in ids:
            name = names.get(node_id, node_id)
            head += [f"{name} {what}" for what in ("compute ms", "wait ms", "hop ms", "cache bytes")]
        writer.writerow(head)
        counters = deque(self._counters)
        passed: deque[Statistics] = deque()
        for speed in self._speeds:
            while counters and counters[0].time_seconds <= speed.time_seconds:
                passed.append(counters.popleft())
            rates = {rate.node_id: rate for rate in _rates_of(passed)}
            row: list[object] = [
                f"{speed.time_seconds:.2f}",
                f"{speed.decode_tokens_per_second:.2f}",
                f"{speed.prefill_tokens_per_second:.2f}",
                speed.active_requests,
            ]
            for node_id in ids:
                rate = rates.get(node_id)
                row += _cells(rate) if rate is not None else ["", "", "", ""]
            writer.writerow(row)
        return text.getvalue()

    def _newest_rates(self) -> tuple[StageRate, ...]:
        return _rates_of(self._counters)


def _rates_of(counters: deque[Statistics]) -> tuple[StageRate, ...]:
    """The mean of the newest second; nothing if some rank made no step in it."""
    if len(counters) < 2:
        return ()
    newest = counters[-1]
    before = counters[0]
    for sample in reversed(counters):
        before = sample
        if sample.time_seconds <= newest.time_seconds - MEAN_SECONDS:
            break
    pairs = list(zip(before.stages, newest.stages, strict=True))
    if any(now.steps <= then.steps for then, now in pairs):
        return ()
    return tuple(_rate(then, now) for then, now in pairs)


def _rate(then: StageTimes, now: StageTimes) -> StageRate:
    steps = now.steps - then.steps
    return StageRate(
        now.node_id,
        (now.compute_seconds - then.compute_seconds) / steps,
        (now.wait_seconds - then.wait_seconds) / steps,
        (now.send_seconds - then.send_seconds) / steps,
        now.kv_bytes,
    )


def _follows(before: Statistics, after: Statistics) -> bool:
    """Whether the same workers went on counting."""
    return (
        after.time_seconds >= before.time_seconds
        and [stage.node_id for stage in before.stages] == [stage.node_id for stage in after.stages]
        and all(now.steps >= then.steps for then, now in zip(before.stages, after.stages, strict=True))
    )


def _cells(rate: StageRate) -> list[object]:
    times = (rate.compute_seconds, rate.wait_seconds, rate.hop_seconds)
    return [*(f"{seconds * 1000:.3f}" for seconds in times), rate.kv_bytes]
