"""Tokens per second over the last second."""

from __future__ import annotations

from collections import deque


class RateMeter:
    """Counts events with their time; the rate is over a window that ends now. Pure: the caller brings the clock."""

    def __init__(self, window_seconds: float = 1.0) -> None:
        self._window_seconds = window_seconds
        self._events: deque[tuple[float, int]] = deque()
        self._count = 0

    def add(self, now_seconds: float, count: int = 1) -> None:
        """``count`` tokens at ``now_seconds``, which never goes back."""
        self._events.append((now_seconds, count))
        self._count += count

    def per_second(self, now_seconds: float) -> float:
        """The rate over the window before ``now_seconds``."""
        while self._events and self._events[0][0] <= now_seconds - self._window_seconds:
            self._count -= self._events.popleft()[1]
        return self._count / self._window_seconds
