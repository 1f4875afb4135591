"""Watches the network for agents that announce themselves over mDNS."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Literal

from zeroconf import DNSQuestionType, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo

from discovery.allowance import Allowances
from discovery.announcement import SERVICE_TYPE, BadAnnouncement, decode_announcement, is_instance_name
from discovery.interfaces import loopback_interfaces
from discovery.multicast import Multicast

if TYPE_CHECKING:
    from collections.abc import Callable

    from discovery.announcement import Sighting
    from discovery.interfaces import LanInterface
    from discovery.multicast import Look

Change = Literal["added", "updated", "removed"]

MAX_SIGHTINGS = 256
"""Names that are believed at once; a flood of invented ones ends here."""
LONELY_SIGHTINGS = 2
"""With fewer than so many in sight, this machine's own among them, it is looked for others more often."""

_BURST_CHANGES, _CHANGES_PER_SECOND = 8, 1.0
_RESOLVE_MILLISECONDS = 3000
_REPLACED_SECONDS = 1.5
"""A record that another has replaced stays valid for one second (RFC 6762, section 10.2), and nothing tells its end."""
_log = logging.getLogger(__name__)


class Browser:
    """Tells ``on_change`` of every agent that appears, changes or says goodbye, on the loop's thread.

    Questions are always multicast: answers to unicast ones would go to the system's own mDNS responder, which shares
    the port. The zeroconf browser is made anew at every change of the network and every ``refresh_seconds``: one that
    was started while a cable was out asks no more by itself for up to an hour. While nobody else is in sight it is made
    anew every ``lonely_seconds``, because the cable that is out may be one of a switch.

    Eight changes at once and one a second after that are told of each name; what a flood brought beyond is told when
    the browser is made anew. An agent that crashed is not ``removed``; whether one is alive must be asked of itself.
    """

    def __init__(
        self,
        on_change: Callable[[Change, Sighting], None],
        look: Look = loopback_interfaces,
        refresh_seconds: float = 30.0,
        lonely_seconds: float = 5.0,
    ) -> None:
        self._on_change = on_change
        self._refresh_seconds = refresh_seconds
        self._lonely_seconds = lonely_seconds
        self._multicast = Multicast(look, self._on_network)
        self._zeroconf: Zeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._resolving: dict[str, asyncio.Task[None]] = {}
        self._looking_again: dict[str, asyncio.TimerHandle] = {}
        self._sightings: dict[str, Sighting] = {}
        self._allowances = Allowances(_BURST_CHANGES, _CHANGES_PER_SECOND, MAX_SIGHTINGS)

    async def start(self) -> None:
        """Begin to look. Raises :class:`OSError` if an interface cannot be used."""
        self._zeroconf = (await self._multicast.open()).zeroconf
        self._browser = self._ask(self._zeroconf)
        self._refreshing = asyncio.create_task(self._refresh_for_ever(), name="browser")
        self._multicast.follow()

    async def close(self) -> None:
        """Stop looking; ``on_change`` is not called any more."""
        browser, self._browser = self._browser, None
        self._zeroconf = None
        for timer in self._looking_again.values():
            timer.cancel()
        self._looking_again.clear()
        if browser is not None:
            await browser.async_cancel()
        tasks = [*self._resolving.values(), *filter(None, [self._refreshing])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._multicast.close()

    async def _on_network(self, interfaces: tuple[LanInterface, ...]) -> None:
        await self._multicast.use(interfaces)
        await self._renew()

    def _ask(self, zeroconf: Zeroconf) -> AsyncServiceBrowser:
        return AsyncServiceBrowser(
            zeroconf, SERVICE_TYPE, handlers=[self._on_state_change], question_type=DNSQuestionType.QM
        )

    async def _renew(self) -> None:
        if self._zeroconf is None:  # closed meanwhile
            return
        old, self._browser = self._browser, self._ask(self._zeroconf)  # new first: no goodbye falls between them
        if old is not None:
            await old.async_cancel()

    async def _refresh_for_ever(self) -> None:
        asked_seconds = time.monotonic()
        while True:
            await asyncio.sleep(min(self._lonely_seconds, self._refresh_seconds))
            due = time.monotonic() - asked_seconds >= self._refresh_seconds
            if due or len(self._sightings) < LONELY_SIGHTINGS:
                asked_seconds = time.monotonic()
                await self._renew()

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
            if name in self._sightings and self._may(name):
                self._on_change("removed", self._sightings.pop(name))
        elif name not in self._sightings and len(self._sightings) + len(self._resolving) >= MAX_SIGHTINGS:
            _log.debug("ignored the announcement of %s: there are %d others", name, MAX_SIGHTINGS)
        else:
            info = AsyncServiceInfo(SERVICE_TYPE, name)
            if info.load_from_cache(zeroconf):
                self._believe(name, info)
                if name not in self._looking_again:
                    again = asyncio.get_running_loop().call_later(_REPLACED_SECONDS, self._look_again, name)
                    self._looking_again[name] = again
            elif self._may(name):
                self._resolving[name] = asyncio.create_task(self._resolve(zeroconf, name, info))

    def _look_again(self, name: str) -> None:
        del self._looking_again[name]
        info = AsyncServiceInfo(SERVICE_TYPE, name)
        if self._zeroconf is not None and info.load_from_cache(self._zeroconf):
            self._believe(name, info)

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
        if sighting != known and self._may(name):
            self._sightings[name] = sighting
            self._on_change("added" if known is None else "updated", sighting)

    def _may(self, name: str) -> bool:
        """Whether something new about ``name`` is to be acted on now."""
        if self._allowances.take(name, time.monotonic()):
            return True
        _log.debug("ignored what is new about %s: it changes too often", name)
        return False
