"""How a session is, for whoever watches it from outside. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

SILENT_SECONDS = 2.5
"""A worker reports at least once a second; one that does not for so long is told of."""
NO_STEP_SECONDS = 30.0
"""The same for a driver that has something to do."""


class RankHealth(msgspec.Struct, frozen=True):
    """One rank."""

    rank: int
    node: str
    phase: str
    steps: int
    silent_seconds: float
    """Since the worker's last report."""


class Health(msgspec.Struct, frozen=True):
    """All of them."""

    status: Literal["ok", "loading", "stalled", "ending"]
    reason: str
    """What is wrong, in a sentence; empty if nothing is."""
    active_requests: int
    ranks: tuple[RankHealth, ...]


def of_running(ranks: tuple[RankHealth, ...], active_requests: int, no_sign_seconds: float) -> Health:
    """Of a session that can be asked; ``no_sign_seconds`` since its driver said something or was given work."""
    slowest = max(ranks, key=lambda rank: rank.silent_seconds)
    reason = ""
    if slowest.silent_seconds > SILENT_SECONDS:
        reason = f"The worker on {slowest.node} has made no sign for {slowest.silent_seconds:.0f} s."
    elif active_requests and no_sign_seconds > NO_STEP_SECONDS:
        reason = f"There was no step for {no_sign_seconds:.0f} s."
    return Health("stalled" if reason else "ok", reason, active_requests, ranks)
