"""Tokens per second over the last moments."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

WINDOW_SECONDS = 1.0
SLOW_WINDOW_SECONDS = 5.0
"""Two events are looked for so far back: a model that takes seconds for a token has a rate too."""


class _Event(NamedTuple):
    time_seconds: float
    tokens: int


class RateMeter:
    """Counts tokens with their time. Pure: the caller brings the clock.

    The rate is what came after the window's first event, over the time since; whole tokens per second would jump
    between neighbours on a slow model.
    """

    def __init__(self) -> None:
        self._events: deque[_Event] = deque()

    def add(self, now_seconds: float, count: int = 1) -> None:
        """``count`` tokens at ``now_seconds``, which never goes back."""
        if count > 0:
            self._events.append(_Event(now_seconds, count))

    def per_second(self, now_seconds: float) -> float:
        """The rate now; falls as soon as the next token is later than those before it, and ends at 0."""
        events = self._events
        while events and (
            events[0].time_seconds < now_seconds - SLOW_WINDOW_SECONDS
            or (len(events) > 2 and events[1].time_seconds < now_seconds - WINDOW_SECONDS)
        ):
            events.popleft()
        if len(events) < 2:
            return 0.0
        first, last = events[0].time_seconds, events[-1].time_seconds
        tokens = sum(event.tokens for event in events) - events[0].tokens
        usual_pause = (last - first) / (len(events) - 1)
        late_seconds = max(0.0, now_seconds - last - usual_pause)
        if late_seconds > WINDOW_SECONDS + 2 * usual_pause:
            return 0.0
        return tokens / max(last - first + late_seconds, 1e-6)
