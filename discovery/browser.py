"""Watches the network for agents that announce themselves over mDNS."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Literal

from zeroconf import DNSQuestionType, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from discovery.announcement import LOOPBACK, SERVICE_TYPE, BadAnnouncement, decode_announcement, is_instance_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from discovery.announcement import Sighting

Change = Literal["added", "updated", "removed"]

MAX_SIGHTINGS = 256
"""Names that are believed at once; a flood of invented ones ends here."""

_RESOLVE_MILLISECONDS = 3000
_log = logging.getLogger(__name__)


class Browser:
    """Tells ``on_change`` of every agent that appears, changes or says goodbye, on the loop's thread.

    Questions are always multicast: answers to unicast ones would go to the system's own mDNS responder, which shares
    the port. The zeroconf browser is made anew every ``refresh_seconds``: one that was started while a cable was out
    asks no more by itself for up to an hour.

    An agent that crashed is not ``removed``; whether one is alive must be asked of the agent itself.
    """

    def __init__(
        self,
        on_change: Callable[[Change, Sighting], None],
        interfaces: Sequence[str] = LOOPBACK,
        refresh_seconds: float = 30.0,
    ) -> None:
        self._on_change = on_change
        self._interfaces = list(interfaces)
        self._refresh_seconds = refresh_seconds
        self._zeroconf: AsyncZeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._resolving: dict[str, asyncio.Task[None]] = {}
        self._sightings: dict[str, Sighting] = {}

    async def start(self) -> None:
        """Begin to look. Raises :class:`OSError` if an interface cannot be used."""
        self._zeroconf = AsyncZeroconf(interfaces=self._interfaces)
        self._browser = self._look(self._zeroconf.zeroconf)
        self._refreshing = asyncio.create_task(self._refresh_for_ever(self._zeroconf.zeroconf))

    async def close(self) -> None:
        """Stop looking; ``on_change`` is not called any more."""
        browser, self._browser = self._browser, None
        if browser is not None:
            await browser.async_cancel()
        tasks = [*self._resolving.values(), *filter(None, [self._refreshing])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        zeroconf, self._zeroconf = self._zeroconf, None
        if zeroconf is not None:
            await zeroconf.async_close()

    def _look(self, zeroconf: Zeroconf) -> AsyncServiceBrowser:
        return AsyncServiceBrowser(
            zeroconf, SERVICE_TYPE, handlers=[self._on_state_change], question_type=DNSQuestionType.QM
        )

    async def _refresh_for_ever(self, zeroconf: Zeroconf) -> None:
        while True:
            await asyncio.sleep(self._refresh_seconds)
            old, self._browser = self._browser, self._look(zeroconf)  # the new one first: no goodbye falls between them
            if old is not None:
                await old.async_cancel()

    def _on_state_change(
        self,
        zeroconf: Zeroconf,
        service_type: str,  # noqa: ARG002  zeroconf passes it by this name
        name: str,
        state_change: ServiceStateChange,
    ) -> None:
        if not is_instance_name(name):
            _log.debug("ignored the announcement of %r: no agent has such a name", name)
            return
        if (task := self._resolving.pop(name, None)) is not None:
            task.cancel()
        if state_change is ServiceStateChange.Removed:
            if (gone := self._sightings.pop(name, None)) is not None:
                self._on_change("removed", gone)
        elif name not in self._sightings and len(self._sightings) + len(self._resolving) >= MAX_SIGHTINGS:
            _log.debug("ignored the announcement of %s: there are %d others", name, MAX_SIGHTINGS)
        else:
            info = AsyncServiceInfo(SERVICE_TYPE, name)
            if info.load_from_cache(zeroconf):
                self._believe(name, info)
            else:
                self._resolving[name] = asyncio.create_task(self._resolve(zeroconf, name, info))

    async def _resolve(self, zeroconf: Zeroconf, name: str, info: AsyncServiceInfo) -> None:
        try:
            complete = await info.async_request(zeroconf, _RESOLVE_MILLISECONDS, DNSQuestionType.QM)
        finally:
            if self._resolving.get(name) is asyncio.current_task():
                del self._resolving[name]
        if complete:
            self._believe(name, info)
        else:
            _log.debug("ignored the announcement of %s: its records did not come", name)

    def _believe(self, name: str, info: AsyncServiceInfo) -> None:
        try:
            sighting = decode_announcement(name, info.properties, info.parsed_scoped_addresses())
        except BadAnnouncement as error:
            _log.debug("ignored the announcement of %s: %s", name, error)
            return
        known = self._sightings.get(name)
        if sighting != known:
            self._sightings[name] = sighting
            self._on_change("added" if known is None else "updated", sighting)
