"""Masks: which tokens may come next, for requests whose answer follows a grammar. Pure.

Text never reaches a worker, so the controller works a mask out for each token, and the token waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.engine.hop import HopError

if TYPE_CHECKING:
    from runtime.engine.frames import Mask


class Masks:
    """The masks of all masked requests; others are not known here."""

    def __init__(self) -> None:
        self.missing: set[int] = set()
        """Requests whose next token waits for its mask."""
        self._allowed: dict[int, bytes] = {}

    def expect(self, request: int) -> None:
        """The next token of ``request`` needs a mask."""
        self.missing.add(request)

    def add(self, mask: Mask, next_index: int) -> bool:
        """Take one that arrived; returns whether it allows anything.

        Raises :class:`HopError` if it is not the one that its request, now at token ``next_index``, waits for.
        """
        if mask.request not in self.missing or mask.index != next_index:
            raise HopError(f"a mask came for token {mask.index} of request {mask.request}, which is at {next_index}")
        self.missing.remove(mask.request)
        self._allowed[mask.request] = mask.allowed
        return not mask.allowed or any(mask.allowed)

    def take(self, request: int) -> bytes:
        """Use the mask of the next token up; empty for a request without."""
        return self._allowed.pop(request, b"")

    def forget(self, request: int) -> None:
        """A request is over."""
        self.missing.discard(request)
        self._allowed.pop(request, None)
