"""Who has been silent for too long, by a clock that stands still while the one who listens does.

Signs of life arrive while nobody looks: when a machine has slept, or was too busy to let the listener run, everybody
else would seem to have been silent. So time between two looks counts only up to a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

K = TypeVar("K", bound="Hashable")

_LOOK_LIMIT_SECONDS = 0.5


class Signs(Generic[K]):
    """When each of those that make signs of life was heard last. Pure: the caller brings the clock to :meth:`look`."""

    def __init__(self) -> None:
        self._attentive_seconds = 0.0
        self._looked_seconds: float | None = None
        self._heard: dict[K, float] = {}

    def hear(self, key: K) -> None:
        """It is there now; from now on more is expected of it."""
        self._heard[key] = self._attentive_seconds

    def forget(self, key: K) -> None:
        """Nothing is expected of it any more."""
        self._heard.pop(key, None)

    def look(self, now_seconds: float) -> None:
        """Let time go on; to be called several times a second."""
        if self._looked_seconds is not None:
            self._attentive_seconds += min(now_seconds - self._looked_seconds, _LOOK_LIMIT_SECONDS)
        self._looked_seconds = now_seconds

    def silent_seconds(self, key: K) -> float:
        """For how long nothing was heard of it; 0 if nothing is expected."""
        heard = self._heard.get(key)
        return 0.0 if heard is None else self._attentive_seconds - heard

    def silent(self, limit_seconds: float) -> list[K]:
        """Who has been silent for longer."""
        return [key for key in self._heard if self.silent_seconds(key) > limit_seconds]
