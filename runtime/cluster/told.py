"""What front ends are told of a rank."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from runtime.cluster.health import RankHealth
from runtime.cluster.messages import LoadProgress, RankHeld, StageTimes
from runtime.engine.orders import StepStatistics

if TYPE_CHECKING:
    from runtime.cluster.launch import RankState
    from runtime.cluster.messages import LoadPhase

_CRASHES = {"SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP"}


def progress(rank: RankState) -> LoadProgress:
    """Where it is on its way to ready."""
    planned, rate = rank.planned, rank.load_bytes_per_second
    return LoadProgress(
        rank.rank,
        planned.node_id,
        planned.node_name,
        rank.phase,
        rank.loaded_bytes,
        planned.weight_bytes,
        rate,
        max(planned.weight_bytes - rank.loaded_bytes, 0) / rate if rate > 0 else None,
    )


def times(rank: RankState) -> StageTimes:
    """What it has counted."""
    counted = rank.statistics or StepStatistics(0, 0, 0.0, 0, 0)
    return StageTimes(
        rank=rank.rank,
        node_id=rank.planned.node_id,
        steps=counted.steps,
        tokens=counted.tokens,
        compute_seconds=counted.compute_seconds,
        wait_seconds=counted.wait_seconds,
        send_seconds=counted.send_seconds,
        sent_bytes=counted.sent_bytes,
        kv_bytes=counted.kv_bytes,
        in_flight=counted.in_flight,
    )


def health(rank: RankState, now_seconds: float) -> RankHealth:
    """How it is."""
    steps = rank.statistics.steps if rank.statistics else 0
    silent_seconds = round(now_seconds - rank.last_sign_seconds, 3)
    return RankHealth(rank.rank, rank.planned.node_name, rank.phase, steps, silent_seconds)


def held(rank: RankState) -> RankHeld:
    """What it has in memory."""
    return RankHeld(
        rank.rank,
        rank.planned.node_id,
        rank.planned.node_name,
        rank.launch.first_layer,
        rank.launch.end_layer - 1,
        rank.planned.weight_bytes,
        rank.held_bytes,
        rank.read_bytes,
    )


def end_of_worker(status: int, phase: LoadPhase) -> str:
    """How a worker ended that nobody had asked to; ``status`` as :attr:`subprocess.Popen.returncode`."""
    if status > 0 and phase == "connecting":  # the end that a rank sets itself while MLX connects its ring
        return (
            "could not connect to the others of its tensor group: a firewall is in the way, or another program "
            "has taken its port; start again"
        )
    if status >= 0:
        return f"ended unexpectedly (exit status {status}) while {phase}"
    name = _signal_name(-status)
    if name == "SIGKILL":
        return "was ended by SIGKILL, as the system does when memory runs out"
    if name in _CRASHES:
        return f"crashed in native code ({name}), as it does when it gets no memory; its log may say more"
    return f"was ended by {name}"


def _signal_name(number: int) -> str:
    """Of a signal, as the manual has it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
