"""Notices by the clocks that this machine slept, and says when. Nobody tells a process."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from resources.node import LastSleep

if TYPE_CHECKING:
    from collections.abc import Callable

SLEPT_SECONDS = 2.0
"""Shorter is no sleep that anyone would miss."""


def asleep_seconds() -> float:
    """How long the machine has slept since it was started: by how much one clock is ahead of one that then stops."""
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC_RAW) - time.clock_gettime(time.CLOCK_UPTIME_RAW)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


class SleepWatch:
    """Knows the last sleep since it was made, as exactly as :meth:`look` is called often."""

    def __init__(
        self, asleep: Callable[[], float] = asleep_seconds, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._asleep = asleep
        self._wall_clock = wall_clock
        self._asleep_before = asleep()
        self._seen_at = wall_clock()
        self._last: LastSleep | None = None

    def look(self) -> LastSleep | None:
        """To be called about once a second. The last sleep began right after the look before it."""
        asleep, now = self._asleep(), self._wall_clock()
        if asleep - self._asleep_before > SLEPT_SECONDS:
            self._last = LastSleep(self._seen_at, asleep - self._asleep_before)
        self._asleep_before, self._seen_at = asleep, now
        return self._last

    def within(self, seconds: float) -> LastSleep | None:
        """The last sleep if it ended within so many seconds."""
        last = self.look()
        woke_before = self._seen_at - (last.began_at + last.seconds) if last is not None else seconds
        return last if woke_before < seconds else None


def slept_words(sleep: LastSleep) -> str:
    """``slept at 14:02 for 9 min``, by the clock of whoever reads it."""
    minutes = round(sleep.seconds / 60)
    if minutes < 1:
        length = f"{sleep.seconds:.0f} s"
    elif minutes < 60:
        length = f"{minutes} min"
    else:
        length = f"{minutes // 60} h {minutes % 60} min"
    return f"slept at {time.strftime('%H:%M', time.localtime(sleep.began_at))} for {length}"
