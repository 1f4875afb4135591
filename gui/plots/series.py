"""The samples behind a plot: five minutes of them, smoothed a little, and a scale that people can read. No Qt."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from itertools import islice

WINDOW_SECONDS = 60.0
"""What is shown, until someone wants to see all that is kept."""
KEPT_SECONDS = 300.0
SMOOTH_SECONDS = 1.0
"""A sample counts whole tokens of one second, so slow models jump between two numbers; the mean of as long does not."""
_DRAWN_POINTS = 240
"""Of a curve: a quarter of a second each while a minute is shown, which is finer than the values are smoothed."""


class Series:
    """Samples of the last five minutes before the newest, or before a later ``now``."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque()
        self._recent: deque[tuple[float, float]] = deque()

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, time_seconds: float, value: float) -> None:
        """Add a sample. Time never runs backwards in one session, so an older one begins a new session."""
        if self._samples and time_seconds < self._samples[-1][0]:
            self.clear()
        self._recent.append((time_seconds, value))
        while self._recent[0][0] < time_seconds - SMOOTH_SECONDS:
            self._recent.popleft()
        mean = sum(recent for _, recent in self._recent) / len(self._recent)
        self._samples.append((time_seconds, mean if value > 0 else 0.0))
        self.forget_before(time_seconds - KEPT_SECONDS)

    def forget_before(self, time_seconds: float) -> None:
        """Drop what is older, but keep one sample for the line to come in from the edge."""
        while len(self._samples) > 1 and self._samples[1][0] < time_seconds:
            self._samples.popleft()

    def clear(self) -> None:
        """Forget everything."""
        self._samples.clear()
        self._recent.clear()

    @property
    def newest(self) -> tuple[float, float] | None:
        return self._samples[-1] if self._samples else None

    def points(self, now_seconds: float, span_seconds: float = WINDOW_SECONDS) -> tuple[list[float], list[float]]:
        """Ages (0 is now, negative is past) and values, ready to draw; the last value holds until now.

        No more of them than can be told apart. Which ones follows from their times alone, so that the curve slides.
        """
        step = span_seconds / _DRAWN_POINTS
        first = max(self._place(now_seconds - span_seconds) - 1, 0)
        times: list[float] = []
        values: list[float] = []
        drawn_steps = -1.0
        for time, value in islice(self._samples, first, None):
            steps = time // step
            if steps != drawn_steps:
                drawn_steps = steps
                times.append(time - now_seconds)
                values.append(value)
        if times and times[-1] < 0:
            times.append(0.0)
            values.append(self._samples[-1][1])
        return times, values

    def value_at(self, time_seconds: float) -> float | None:
        """The value of the sample nearest to a time; None without samples, or for a time before them."""
        if not self._samples or time_seconds < self._samples[0][0] - SMOOTH_SECONDS:
            return None
        index = self._place(time_seconds)
        near = [self._samples[place] for place in (index - 1, index) if 0 <= place < len(self._samples)]
        return min(near, key=lambda sample: abs(sample[0] - time_seconds))[1]

    def peak(self, now_seconds: float, span_seconds: float = WINDOW_SECONDS) -> float:
        """The highest value of the last minute, or of so many seconds."""
        first = self._place(now_seconds - span_seconds)
        return max((value for _, value in islice(self._samples, first, None)), default=0.0)

    def _place(self, time_seconds: float) -> int:
        """Of the first sample that is not before this time."""
        return bisect_left(self._samples, time_seconds, key=lambda sample: sample[0])


def nice_ceiling(peak: float) -> float:
    """The top of an axis for values up to ``peak``: a round number with a little room above."""
    wanted = max(peak * 1.08, 1.0)
    scale = 1.0
    while scale * 10 < wanted:
        scale *= 10
    return next(step * scale for step in (1, 2, 2.5, 4, 5, 8, 10) if step * scale >= wanted)
