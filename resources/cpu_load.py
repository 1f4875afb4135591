"""How busy the cores of this machine are."""

from __future__ import annotations

import time

import psutil

_LEAST_SECONDS = 0.5
"""Between two readings: the kernel counts in hundredths of a second."""


class CpuLoad:
    """The share of the time that all cores together were busy, since about a second ago."""

    def __init__(self) -> None:
        self._read_at = time.monotonic()
        self._busy, self._total = core_seconds()
        self._load: float | None = None

    def latest(self) -> float | None:
        """0 to 1; None until there is something to compare with. Costs next to nothing."""
        now = time.monotonic()
        if now - self._read_at >= _LEAST_SECONDS:
            busy, total = core_seconds()
            if total > self._total:
                self._load = round(min(max((busy - self._busy) / (total - self._total), 0.0), 1.0), 2)
            self._busy, self._total, self._read_at = busy, total, now
        return self._load


def core_seconds() -> tuple[float, float]:
    """Seconds that cores were busy, and seconds in all, since the machine was started."""
    times = psutil.cpu_times()
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)  # in user time already
    return total - times.idle - getattr(times, "iowait", 0.0), total
