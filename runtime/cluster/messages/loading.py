"""What the controller says of a model on its way to being asked."""

from __future__ import annotations

from typing import Literal

import msgspec

from runtime.cluster.messages.base import Message
from runtime.planning.values import Plan  # msgspec resolves the annotation when it decodes

LoadPhase = Literal["starting", "connecting", "loading", "warming up", "ready"]


class Opened(msgspec.Struct, frozen=True):
    """The controller's first and only line on standard output."""

    port: int = 0
    error: str = ""
    """Why there will be no session, for a person; then the port is 0."""


class LoadProgress(Message, frozen=True, tag="load_progress"):
    """Where one rank is on its way to ready."""

    rank: int
    node_id: str
    node_name: str
    phase: LoadPhase
    loaded_bytes: int
    total_bytes: int
    bytes_per_second: float = 0.0
    """Since it began to load; zero until that can be told, and in any other phase."""
    seconds_left: float | None = None


class ModelFetch(Message, frozen=True, tag="model_fetch"):
    """A node gets what its layers need: first what comes from where, in ``words``, then how far it is."""

    node_id: str
    node_name: str
    words: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    bytes_per_second: float = 0.0
    seconds_left: float | None = None


class RankHeld(msgspec.Struct, frozen=True):
    """What a rank truly holds after loading."""

    rank: int
    node_id: str
    node_name: str
    first_layer: int
    last_layer: int
    """Inclusive."""
    planned_bytes: int
    held_bytes: int
    """Bytes that MLX has allocated in that process for weights."""
    read_bytes: int = 0
    """How many of them were read for this plan: all at the start, those of moved layers after a ``Resplit``."""


class UsedLink(msgspec.Struct, frozen=True):
    """The way from one stage to the next."""

    from_node: str
    to_node: str
    name: str
    """``Thunderbolt``, ``Ethernet 10G``, ``Wi-Fi``, ``this machine``."""
    address: str
    """Of the second node, as the first dials it."""
    rtt_seconds: float
    bytes_per_second: float

    def __str__(self) -> str:
        return f"{self.name}, {self.rtt_seconds * 1000:.1f} ms"


class Ready(Message, frozen=True, tag="ready"):
    """The model is loaded and warm; chats may begin."""

    plan: Plan
    ranks: tuple[RankHeld, ...]
    links: tuple[UsedLink, ...] = ()
    """From each stage to the next, and from the last back to the first; empty if nothing was measured."""
    warnings: tuple[str, ...] = ()
    """What may matter and does not stop anything, a sentence each."""


class Serving(Message, frozen=True, tag="serving"):
    """Programs reach the model here, as soon as it is ready."""

    address: str
    """Of the API: ``http://127.0.0.1:52520/v1``."""
    model: str
    """What they have to call it."""
    api_key: str = ""
    """What they have to show; empty if nothing. Front ends are shown it, because they run for the same person."""


class ServeRefused(Message, frozen=True, tag="serve_refused"):
    """Programs cannot reach it as was asked for, so they reach it as before."""

    reason: str
