"""Strings that end an answer. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class StopStrings:
    """Looks for the first of ``stops`` in text that comes in pieces; what may be the beginning of one is held back."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(filter(None, stops))
        self._held = ""
        self.found: str | None = None
        """The one that came; nothing is let through from then on."""

    def add(self, text: str) -> str:
        """What of the text so far can be shown now."""
        if self.found is not None:
            return ""
        if not self._stops:
            return text
        text = self._held + text
        ends = [(place, stop) for stop in self._stops if (place := text.find(stop)) >= 0]
        if ends:
            place, self.found = min(ends, key=lambda end: end[0])
            self._held = ""
            return text[:place]
        keep = self._beginning_at_end(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """What was held back: no stop string came of it."""
        held, self._held = self._held, ""
        return held

    def _beginning_at_end(self, text: str) -> int:
        """The length of the longest end of ``text`` with which a stop string begins."""
        longest = min(len(text), max(map(len, self._stops)) - 1)
        return next(
            (size for size in range(longest, 0, -1) if any(stop.startswith(text[-size:]) for stop in self._stops)), 0
        )
