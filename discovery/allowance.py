"""How often something from the network may be acted on. Pure: the caller brings the time."""

from __future__ import annotations

from collections import OrderedDict


class Allowances:
    """A bucket of ``burst`` for each name, filled again at ``per_second``. Beyond ``most_names`` the oldest goes."""

    def __init__(self, burst: int, per_second: float, most_names: int) -> None:
        self._burst = burst
        self._per_second = per_second
        self._most_names = most_names
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What is left of each bucket, and when that was."""

    def take(self, name: str, now_seconds: float) -> bool:
        """Whether ``name`` may act now; if so, that is counted."""
        left, then_seconds = self._left.pop(name, (float(self._burst), now_seconds))
        left = min(self._burst, left + (now_seconds - then_seconds) * self._per_second)
        granted = left >= 1
        self._left[name] = (left - granted, now_seconds)
        if len(self._left) > self._most_names:
            self._left.popitem(last=False)
        return granted
