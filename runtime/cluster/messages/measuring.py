"""What the controller says of how fast a session runs."""

from __future__ import annotations

import msgspec

from runtime.cluster.messages.base import Message
from runtime.planning.values import Plan  # msgspec resolves the annotation when it decodes


class Throughput(Message, frozen=True, tag="throughput"):
    """Sampled ten times a second while something runs, and once when it stops."""

    time_seconds: float
    """Seconds since the session became ready."""
    decode_tokens_per_second: float
    """Over the last second, all answers together."""
    prefill_tokens_per_second: float
    active_requests: int


class StageTimes(msgspec.Struct, frozen=True):
    """What a rank has counted since it started."""

    rank: int
    node_id: str
    steps: int
    tokens: int
    compute_seconds: float
    wait_seconds: float
    """Nothing to do."""
    send_seconds: float
    """Writing to the next stage, beside compute."""
    sent_bytes: int
    kv_bytes: int
    in_flight: int
    """On the driver: steps that have not come back."""


class Statistics(Message, frozen=True, tag="statistics"):
    """Every rank's counters, at most ten times a second while they move."""

    time_seconds: float
    """Seconds since the session became ready."""
    stages: tuple[StageTimes, ...]


class MeasuredStage(msgspec.Struct, frozen=True):
    """One stage, for one token of one chat."""

    node_names: tuple[str, ...]
    """Several of a tensor group."""
    first_layer: int
    last_layer: int
    """Inclusive."""
    predicted_seconds: float
    """For as long a text as the chats had."""
    measured_seconds: float | None = None
    """None before any chat has run alone."""


class RunMeasured(Message, frozen=True, tag="run_measured"):
    """The stages as they ran beside what was predicted, and a split that follows: when chats have ended, or asked for.

    ``Resplit`` with the proposal goes over to it.
    """

    stages: tuple[MeasuredStage, ...]
    words: str
    """One sentence for a person: what the proposal gains, or why there is none."""
    proposal: Plan | None = None
    """None where another split gains nothing, or nothing was measured."""
    now_tokens_per_second: float = 0.0
    """What was measured comes to with the split as it is, for what the plan is to be best at."""
    then_tokens_per_second: float = 0.0
    """The same with the proposal."""
