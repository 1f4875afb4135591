"""Nodes that answered, each for as long as it is not silent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from discovery.address import HostPort


class Placed(Protocol):
    """Something that listens somewhere."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


N = TypeVar("N", bound=Placed)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a node may be silent, in seconds."""

    silence: float
    """After the last answer it is gone."""
    busy: float
    """The same for one whose kernel has acknowledged what was asked: the machine is there, and has no time."""
    look: float
    """Between two looks at what its kernel has acknowledged."""


@dataclass(slots=True)
class _Listed(Generic[N]):
    node: N
    heard_seconds: float
    silence: asyncio.TimerHandle


class Shelf(Generic[N]):
    """Nodes by their ids. ``on_change`` is called after every change, ``acknowledged`` asks the kernel of a place."""

    def __init__(
        self, patience: Patience, acknowledged: Callable[[str, int], bool], on_change: Callable[[], None]
    ) -> None:
        self._patience = patience
        self._acknowledged = acknowledged
        self._on_change = on_change
        self._listed: dict[str, _Listed[N]] = {}

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._listed

    def get(self, node_id: str) -> N | None:
        """The node as it answered last; None if it is not there."""
        listed = self._listed.get(node_id)
        return listed.node if listed is not None else None

    @property
    def nodes(self) -> list[N]:
        return [listed.node for listed in self._listed.values()]

    def put(self, node_id: str, node: N) -> None:
        """It has answered."""
        if (known := self._listed.get(node_id)) is not None:
            known.silence.cancel()
        loop = asyncio.get_running_loop()
        silence = loop.call_later(self._patience.silence, self._silent, node_id)
        self._listed[node_id] = _Listed(node, loop.time(), silence)
        self._on_change()

    def drop(self, node_id: str, place: HostPort | None = None) -> None:
        """It is gone; with ``place`` only if that is where it was."""
        listed = self._listed.get(node_id)
        if listed is not None and (place is None or (place.host, place.port) == (listed.node.host, listed.node.port)):
            listed.silence.cancel()
            del self._listed[node_id]
            self._on_change()

    def clear(self) -> None:
        """Forget them all, without a word."""
        for listed in self._listed.values():
            listed.silence.cancel()
        self._listed.clear()

    def _silent(self, node_id: str) -> None:
        """Its time is over, unless its kernel answers for it."""
        loop, listed = asyncio.get_running_loop(), self._listed[node_id]
        may_be_busy = loop.time() - listed.heard_seconds < self._patience.busy
        if may_be_busy and self._acknowledged(listed.node.host, listed.node.port):
            listed.silence = loop.call_later(self._patience.look, self._silent, node_id)
        else:
            self.drop(node_id)
