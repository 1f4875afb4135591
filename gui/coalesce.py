"""Fewer, larger messages: a window that is told 200 times a second draws no better than one told 25 times."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from runtime.cluster.messages import LoadProgress, ModelFetch, ServerMessage, Statistics, Text, Throughput

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

TEXT_SECONDS = 1 / 25
STATS_SECONDS = 1 / 10


class Coalescer:
    """Passes messages on in order, merging text per answer and keeping the newest of each kind of number.

    The first of a burst passes at once, so nothing waits that need not. Everything that is neither text nor a number
    passes at once too, after what was held back. Belongs to one running event loop.
    """

    def __init__(self, deliver: Callable[[ServerMessage], None]) -> None:
        self._deliver = deliver
        self._text = _Throttle(TEXT_SECONDS, deliver)
        self._stats = _Throttle(STATS_SECONDS, deliver)

    def push(self, message: ServerMessage) -> None:
        """Take the next message of the session."""
        match message:
            case Text():
                self._text.push(message.request_id, message)
            case Throughput():
                self._stats.push("throughput", message)
            case Statistics():
                self._stats.push("statistics", message)
            case LoadProgress():
                self._stats.push(message.rank, message)
            case ModelFetch():
                self._stats.push(("fetch", message.node_id), message)
            case _:
                self.flush()
                self._deliver(message)

    def flush(self) -> None:
        """Deliver what was held back, and stop the clocks."""
        self._text.flush()
        self._stats.flush()


class _Throttle:
    """One delivery at once, then at most one per key and interval."""

    def __init__(self, interval_seconds: float, deliver: Callable[[ServerMessage], None]) -> None:
        self._interval_seconds = interval_seconds
        self._deliver = deliver
        self._held: dict[Hashable, ServerMessage] = {}
        self._timers: dict[Hashable, asyncio.TimerHandle] = {}

    def push(self, key: Hashable, message: ServerMessage) -> None:
        if key not in self._timers:
            self._start(key)
            self._deliver(message)
        else:
            self._held[key] = merged(self._held.get(key), message)

    def flush(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        held, self._held = self._held, {}
        for message in held.values():
            self._deliver(message)

    def _start(self, key: Hashable) -> None:
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(self._interval_seconds, self._on_time, key)

    def _on_time(self, key: Hashable) -> None:
        del self._timers[key]
        message = self._held.pop(key, None)
        if message is not None:
            self._start(key)
            self._deliver(message)


def merged(earlier: ServerMessage | None, later: ServerMessage) -> ServerMessage:
    """Two messages of one kind as one: text is joined, of anything else the later counts."""
    if isinstance(earlier, Text) and isinstance(later, Text):
        return msgspec.structs.replace(
            later, text=earlier.text + later.text, token_ids=earlier.token_ids + later.token_ids
        )
    return later
