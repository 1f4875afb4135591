"""Which nodes are at the addresses that a person typed: asked again and again, because they may change."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from discovery import tls
from runtime.agent.calls import NoAnswer, first_contact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from discovery.address import HostPort

_log = logging.getLogger(__name__)


class TypedAddresses:
    """Tells ``on_found`` the id of the node at each address, or None where nobody answers within the limit."""

    def __init__(
        self, limit_seconds: float, interval_seconds: float, on_found: Callable[[HostPort, str | None], None]
    ) -> None:
        self._limit_seconds = limit_seconds
        self._interval_seconds = interval_seconds
        self._on_found = on_found
        self._looks: dict[HostPort, asyncio.Task[None]] = {}

    def watch(self, typed: Iterable[HostPort]) -> None:
        """Look at these from now on, and at no others."""
        wanted = set(typed)
        for place in self._looks.keys() - wanted:
            self._looks.pop(place).cancel()
            self._on_found(place, None)
        for place in wanted - self._looks.keys():
            self._looks[place] = asyncio.create_task(self._look_at(place), name=f"address {place}")

    async def close(self) -> None:
        """Look no more; ``on_found`` is not called any more."""
        looks = list(self._looks.values())
        self._looks.clear()
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)

    async def _look_at(self, place: HostPort) -> None:
        while True:
            try:
                found = tls.fingerprint_of_pem(await first_contact(place, self._limit_seconds))
            except NoAnswer as error:
                _log.debug("nobody answers at %s: %s", place, error)
                found = None
            self._on_found(place, found)
            await asyncio.sleep(self._interval_seconds)
