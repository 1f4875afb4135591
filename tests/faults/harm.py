"""Harm to a worker, from outside, by name; with a word that must stand in what a person is told."""

from __future__ import annotations

import resource
import signal
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tests.faults.seen import QUESTION

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


LENGTHS = {"first": 12, "middle": 24, "last": 36}
"""Of the questions that come after a harm: each needs more memory than those before it."""


@dataclass(frozen=True)
class Harm:
    """``do`` gets the fleet and the id of the node whose worker is to suffer."""

    do: Callable[[Fleet, str], None]
    word: str
    after_tokens: int = 3
    """Of the answer; 0 before it is asked for."""

    def question(self, place: str) -> str:
        """What is asked while it is done there. A prompt that is to be computed begins like none that was kept."""
        return QUESTION if self.after_tokens else f"{place}: " + QUESTION * LENGTHS[place]


def _signal(number: signal.Signals, fleet: Fleet, node_id: str) -> None:
    fleet.worker(node_id).send_signal(number)


def _no_memory(fleet: Fleet, node_id: str) -> None:
    """Not a byte more than it has. Its address space is no measure: allocators reserve more of it than they use."""
    worker = fleet.worker(node_id)
    resource.prlimit(worker.pid, resource.RLIMIT_DATA, (worker.memory_info().data, resource.RLIM_INFINITY))


def _go_wrong_in(phase: str, fleet: Fleet, node_id: str) -> None:
    fleet.wish_for_worker(node_id, phase)


HARMS = {
    "SIGKILL": Harm(partial(_signal, signal.SIGKILL), "SIGKILL"),
    "SIGSTOP": Harm(partial(_signal, signal.SIGSTOP), "SIGSTOP"),
    "SIGSEGV": Harm(partial(_signal, signal.SIGSEGV), "SIGSEGV"),
    "no memory": Harm(_no_memory, "memory", after_tokens=0),
    "exception in prefill": Harm(partial(_go_wrong_in, "prefill"), "forced in prefill", after_tokens=0),
    "exception in decode": Harm(partial(_go_wrong_in, "decode"), "forced in decode"),
    "hang in decode": Harm(partial(_go_wrong_in, "hang"), "in one step"),
}
