"""When a step or loading counts as stalled. Pure.

A rank that hangs still makes signs of life, from another thread. No fixed limit would do for a step: a token takes
milliseconds, a prompt's chunk on a slow node many seconds; so it is compared with those before it. Loading may take
minutes, but then the process computes or reads all the while; so it does in a step if it has no GPU that could.
"""

from __future__ import annotations

_TIMES_AS_LONG = 10.0
_LEAST_SECONDS, _MOST_SECONDS = 3.5, 120.0
_IDLE_SECONDS, _AFTER_IDLE_SECONDS = 60.0, 30.0
"""After a pause the system may have to bring weights back to memory first."""
_STILL_SECONDS = 4.0
_STILL_CPU_SHARE = 0.02
"""Of a core: what the threads take that watch while nothing else happens is far less."""
_LOOK_LIMIT_SECONDS = 0.5
"""Longer between two looks, the process was stopped or had no processor, and its step stood still with it."""


class Pace:
    """How long steps of each size took, in powers of two of tokens. One thread adds, others may read."""

    def __init__(self) -> None:
        self._longest_seconds = [0.0] * 32

    def add(self, tokens: int, seconds: float) -> None:
        """A step of so many tokens is done."""
        size = tokens.bit_length()
        self._longest_seconds[size] = max(self._longest_seconds[size], seconds)

    def limit_seconds(self, tokens: int) -> float:
        """For a step of so many tokens: by the longest one as large or larger, else by what a smaller one promises."""
        size = tokens.bit_length()
        as_large = next((seconds for seconds in self._longest_seconds[size:] if seconds), 0.0)
        if as_large:
            usual = as_large
        else:
            usual = max(seconds * 2 ** (size - smaller) for smaller, seconds in enumerate(self._longest_seconds[:size]))
        return min(max(_LEAST_SECONDS, _TIMES_AS_LONG * usual), _MOST_SECONDS) if usual else _MOST_SECONDS


class StillWatch:
    """Looks several times a second at what a process has done that has something to do; the caller brings the clock."""

    def __init__(self, still_seconds: float = _STILL_SECONDS) -> None:
        """``still_seconds`` without anything done are a stall."""
        self._limit_seconds = still_seconds
        self._looked_seconds: float | None = None
        self._cpu_seconds = 0.0
        self._reads = -1
        self._still_seconds = 0.0

    def look(self, now_seconds: float, cpu_seconds: float, reads: int) -> float:
        """For how long it has neither computed nor read, if that is a stall; 0 if not.

        ``cpu_seconds`` and ``reads`` (blocks read and pages brought in) are those of the process since it began.
        """
        passed = now_seconds - self._looked_seconds if self._looked_seconds is not None else 0.0
        busy = cpu_seconds - self._cpu_seconds > _STILL_CPU_SHARE * passed or reads != self._reads
        self._looked_seconds, self._cpu_seconds, self._reads = now_seconds, cpu_seconds, reads
        self._still_seconds = 0.0 if busy else self._still_seconds + min(passed, _LOOK_LIMIT_SECONDS)
        return self._still_seconds if self._still_seconds > self._limit_seconds else 0.0


class StallWatch:
    """Looks at a rank's counters several times a second; the caller brings the clock."""

    def __init__(self, pace: Pace, *, has_gpu: bool) -> None:
        self._pace = pace
        self._still = None if has_gpu else StillWatch()
        self._looked_seconds: float | None = None
        self._steps = -1
        self._in_step_seconds = 0.0
        self._idle_seconds = 0.0
        self._idle_before_seconds = 0.0
        self._cpu_seconds = self._cpu_before_seconds = 0.0

    def look(self, now_seconds: float, steps: int, step_tokens: int, cpu_seconds: float, reads: int) -> float:
        """Seconds that the step under way, of ``step_tokens`` (0: none), has taken if it is stalled; 0 if not.

        ``steps`` counts those that are done, ``cpu_seconds`` the processor time that the process has had, ``reads``
        what it read and what was brought back to its memory.
        """
        passed = min(now_seconds - self._looked_seconds, _LOOK_LIMIT_SECONDS) if self._looked_seconds else 0.0
        self._looked_seconds = now_seconds
        self._cpu_seconds = cpu_seconds
        if steps != self._steps or not step_tokens:
            self._cpu_before_seconds = cpu_seconds
            if self._still is not None:
                self._still = StillWatch()
        if steps != self._steps:
            self._steps = steps
            self._in_step_seconds = self._idle_seconds = self._idle_before_seconds = 0.0
        if not step_tokens:
            self._in_step_seconds = 0.0
            self._idle_seconds += passed
            self._idle_before_seconds = self._idle_seconds
            return 0.0
        self._in_step_seconds += passed
        if self._still is not None and self._still.look(now_seconds, cpu_seconds, reads):
            return self._in_step_seconds
        limit = self._pace.limit_seconds(step_tokens)
        if self._idle_before_seconds > _IDLE_SECONDS:
            limit = max(limit, _AFTER_IDLE_SECONDS)
        return self._in_step_seconds if self._in_step_seconds > limit else 0.0

    @property
    def cpu_share(self) -> float:
        """Of a core, in the step under way; one that waits for others of its tensor group spins, in MLX's ring."""
        in_step_cpu_seconds = self._cpu_seconds - self._cpu_before_seconds
        return in_step_cpu_seconds / self._in_step_seconds if self._in_step_seconds else 0.0
