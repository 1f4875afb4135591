"""How often a session goes on after it has lost a rank or a node. Pure: the caller brings the clock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

RECOVERIES, RECOVERY_SECONDS = 3, 600.0
"""A session is mended so often within so long; what breaks more often is broken for another reason."""


@dataclass(slots=True)
class Recoveries:
    """Counts them."""

    _times: deque[float] = field(default_factory=deque)

    def take(self, now_seconds: float) -> bool:
        """Whether the session may be mended once more, which then counts."""
        while self._times and now_seconds - self._times[0] > RECOVERY_SECONDS:
            self._times.popleft()
        if len(self._times) >= RECOVERIES:
            return False
        self._times.append(now_seconds)
        return True
