"""Who has caches, who waits for them, and who gives way when they are full. Pure.

A request begins when its prompt and the next few tokens of everyone fit, not its longest answer: most answers are far
shorter than they may be, and a client that names no limit may fill the whole context. When answers do grow past the
room, the request that came last is *paused*: its caches go, and it begins again as prompt and answer so far when there
is room. What it says does not change by that, because a token's random key depends on its place alone.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from runtime.engine.requests import Request
from runtime.engine.waiting import Waiting

if TYPE_CHECKING:
    from runtime.engine.frames import Submit
    from runtime.engine.orders import CacheLimits

ACTIVE_LIMIT = 64
"""Requests that have caches at one time; others wait."""
GROWTH_TOKENS = 256
"""Nobody begins who would take this much of growth from those who have begun, so pauses are rare."""


class Room:
    """The requests of one driver and the tokens that their caches hold."""

    def __init__(self, limits: CacheLimits) -> None:
        self.context_tokens = min(limits.context_tokens, limits.room_tokens)
        """Of one request: its prompt and its answer."""
        self.active: dict[int, Request] = {}
        """Those that have caches."""
        self._limit_tokens = limits.room_tokens
        self._waiting = Waiting()
        self._paused: deque[Request] = deque()

    def __contains__(self, number: int) -> bool:
        return number in self.active or number in self._waiting or self._is_paused(number)

    @property
    def is_full(self) -> bool:
        """Whether no more may wait."""
        return self._waiting.is_full

    @property
    def spare_tokens(self) -> int:
        """What is left for sequences that are kept without a request; below 0 when someone has to give way."""
        return self._limit_tokens - sum(request.held_tokens for request in self.active.values())

    def wait(self, submit: Submit) -> None:
        """A request has come."""
        self._waiting.add(submit)

    def begin_next(self) -> Request | None:
        """The next request that there is room for, now active; those that were paused come before those that wait.

        Whose turn it is keeps the turn until there is room, or large requests would wait for ever.
        """
        if len(self.active) >= ACTIVE_LIMIT:
            return None
        request = self._paused[0] if self._paused else self._first_waiting()
        if request is None or self._committed_tokens + _claim(request) > self._limit_tokens:
            return None
        if self._paused:
            self._paused.popleft()
        else:
            self._waiting.take()
        self.active[request.submit.request] = request
        return request

    def newest(self) -> Request | None:
        """Who has to give way; none while only one is active, for which there is always room."""
        return max(self.active.values(), key=lambda request: request.turn) if len(self.active) > 1 else None

    def pause(self, request: Request) -> None:
        """Take its caches away; it begins again before all that came after it."""
        del self.active[request.submit.request]
        self._paused.append(request)
        self._paused = deque(sorted(self._paused, key=lambda paused: paused.turn))

    def end(self, number: int) -> Request | None:
        """A request is over, wherever it was. Returns it if it was active."""
        if number in self.active:
            return self.active.pop(number)
        if number in self._waiting:
            self._waiting.remove(number)
        self._paused = deque(request for request in self._paused if request.submit.request != number)
        return None

    def next_index(self, number: int) -> int | None:
        """Which token of its answer a request is at, 0 the first; None for one that is over."""
        request = self.active.get(number)
        if request is None:
            request = next((paused for paused in self._paused if paused.submit.request == number), None)
        if request is not None:
            return request.generated
        return 0 if number in self._waiting else None

    @property
    def _committed_tokens(self) -> int:
        return sum(map(_claim, self.active.values()))

    def _first_waiting(self) -> Request | None:
        submit = self._waiting.first()
        if submit is None:
            return None
        max_tokens = min(submit.max_tokens, self.context_tokens - len(submit.prompt))
        return Request(submit, max_tokens, self._waiting.taken)

    def _is_paused(self, number: int) -> bool:
        return any(request.submit.request == number for request in self._paused)


def _claim(request: Request) -> int:
    return request.held_tokens + min(request.max_tokens - request.generated, GROWTH_TOKENS)
