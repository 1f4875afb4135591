"""Harm to a worker, from outside, by name; with a word that must stand in what a person is told."""

from __future__ import annotations

import resource
import signal
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.planning.plan import Mode
    from tests.faults.fleet import Fleet


PLACES: dict[Mode, dict[str, int]] = {
    "pipeline": {"first": 0, "middle": 1, "last": 2},
    "tensor": {"first": 0, "last": 2},
}
"""The ranks that suffer, by their place among three."""
SPLITS: dict[Mode, tuple[int, ...] | None] = {"pipeline": (10, 10, 10), "tensor": None}


@dataclass(frozen=True)
class Harm:
    """``do`` gets the fleet and the id of the node whose worker is to suffer."""

    do: Callable[[Fleet, str], None]
    word: str
    after_tokens: int = 3
    """Of the answer; 0 before it is asked for."""


def _signal(number: signal.Signals, fleet: Fleet, node_id: str) -> None:
    fleet.worker(node_id).send_signal(number)


def _no_memory(fleet: Fleet, node_id: str) -> None:
    worker = fleet.worker(node_id)
    resource.prlimit(worker.pid, resource.RLIMIT_AS, (worker.memory_info().vms, resource.RLIM_INFINITY))


def _go_wrong_in(phase: str, fleet: Fleet, node_id: str) -> None:
    fleet.wish_for_worker(node_id, phase)


HARMS = {
    "SIGKILL": Harm(partial(_signal, signal.SIGKILL), "SIGKILL"),
    "SIGSTOP": Harm(partial(_signal, signal.SIGSTOP), "SIGSTOP"),
    "SIGSEGV": Harm(partial(_signal, signal.SIGSEGV), "SIGSEGV"),
    "no memory": Harm(_no_memory, "memory"),
    "exception in prefill": Harm(partial(_go_wrong_in, "prefill"), "forced in prefill", after_tokens=0),
    "exception in decode": Harm(partial(_go_wrong_in, "decode"), "forced in decode"),
    "hang in decode": Harm(partial(_go_wrong_in, "hang"), "in one step"),
}
