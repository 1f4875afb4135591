"""What the controller says of a session that is not to go on as it is, or not at all."""

from __future__ import annotations

import msgspec

from resources.memory_return import MemoryReturn  # msgspec resolves the annotation when it decodes
from runtime.cluster.messages.base import Message

_GIB = 1 << 30


class PlanRefused(Message, frozen=True, tag="plan_refused"):
    """The session does not go over to another plan and goes on as it is: why, in one sentence."""

    reason: str


class Recovering(Message, frozen=True, tag="recovering"):
    """Something was lost and the session goes on without it: answers pause, ``LoadProgress`` and ``Ready`` follow."""

    reason: str
    node_id: str | None = None


class Ending(Message, frozen=True, tag="ending"):
    """Something broke and the session cannot go on: told at once. ``Failed`` follows when no worker is left."""

    reason: str
    node_id: str | None = None


class Failed(Message, frozen=True, tag="failed"):
    """The session is over: why, in one sentence that names the node."""

    reason: str
    node_id: str | None = None
    at: float = 0.0
    """When, in seconds since 1970; 0 if nobody looked."""


class MemoryBack(msgspec.Struct, frozen=True):
    """What came back on a node when its workers had ended."""

    node_id: str
    node_name: str
    memory: MemoryReturn

    def __str__(self) -> str:
        held, missing = self.memory.held_bytes, self.memory.missing_bytes
        if not missing:
            return f"{held / _GIB:.1f} GB came back on {self.node_name}."
        return (
            f"{missing / _GIB:.1f} of {held / _GIB:.1f} GB did not come back on {self.node_name}: another program took "
            "them, or the system holds them. Its list of processes tells; a restart frees them."
        )


class Ended(Message, frozen=True, tag="ended"):
    """The session is over because someone asked; no worker is left."""

    memory: tuple[MemoryBack, ...] = ()
