"""The sockets of multicast DNS, kept in step with the interfaces of this machine.

Nobody tells a process that a cable was pulled or that the machine slept, so both are asked for once a second: the
addresses by listing them, sleep by a wall clock that has run ahead of the monotonic one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

from zeroconf import IPVersion
from zeroconf.asyncio import AsyncZeroconf

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from discovery.interfaces import LanInterface

    Look = Callable[[], tuple[LanInterface, ...]]

POLL_SECONDS = 1.0
REPEAT_POLLS = (2, 4)
"""How many polls after a change everything is done again. A new IPv6 address can be bound only when no other machine
has claimed it for a second or two; a switch may forward nothing for a while; and caches keep an old address beside the
new one if they learned it less than a second before (RFC 6762, section 10.2)."""
SLEPT_SECONDS = 5.0
"""A jump of the clocks that means sleep; setting the clock by hand does no harm."""
_log = logging.getLogger(__name__)


class Clocks:
    """Tells whether the machine slept since it was asked last."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._ahead = wall() - monotonic()

    def slept(self) -> bool:
        """The monotonic clock stands still while a machine sleeps."""
        before, self._ahead = self._ahead, self._wall() - self._monotonic()
        return abs(self._ahead - before) > SLEPT_SECONDS


class Multicast:
    """Watches the interfaces that ``look`` lists, and calls ``on_network`` with them after every change and sleep.

    It is called again some seconds later, because networks take a while to work. It decides when the sockets follow, by
    :meth:`use`: what is to be announced has to change before them.
    """

    def __init__(self, look: Look, on_network: Callable[[tuple[LanInterface, ...]], Awaitable[None]]) -> None:
        self._look = look
        self._on_network = on_network
        self._zeroconf: AsyncZeroconf | None = None
        self._following: asyncio.Task[None] | None = None
        self.interfaces: tuple[LanInterface, ...] = ()

    async def open(self) -> AsyncZeroconf:
        """Bind the sockets. Raises :class:`OSError` if the port of mDNS cannot be shared."""
        self.interfaces = self._look()
        self._zeroconf = AsyncZeroconf(interfaces=_choice(self.interfaces), ip_version=_version(self.interfaces))
        await self._zeroconf.zeroconf.async_wait_for_start()
        return self._zeroconf

    def follow(self) -> None:
        """Begin to watch."""
        self._following = asyncio.create_task(self._follow(), name="interfaces")

    async def use(self, interfaces: tuple[LanInterface, ...]) -> None:
        """Open and close sockets to match; whatever is registered is announced on new ones."""
        assert self._zeroconf is not None, "open() comes first"
        await self._zeroconf.async_update_interfaces(_choice(interfaces), _version(interfaces))

    async def close(self) -> None:
        """Say goodbye for whatever is registered, and close. Does nothing if it is not open."""
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
        zeroconf, self._zeroconf = self._zeroconf, None
        if zeroconf is not None:
            await zeroconf.async_close()

    async def _follow(self) -> None:
        clocks, polls = Clocks(), 0
        while True:
            await asyncio.sleep(POLL_SECONDS)
            interfaces = self._look()
            polls += 1
            slept = clocks.slept()
            if interfaces != self.interfaces or slept:
                _log.info("the network changed: %s", "; ".join(map(_words, interfaces)) or "nothing is connected")
                polls = 0
            elif polls not in REPEAT_POLLS:
                continue
            try:
                await self._on_network(interfaces)
            except (OSError, RuntimeError) as error:  # zeroconf's RuntimeError: an interface that went again meanwhile
                _log.warning("the network could not be used, it is tried again: %s", error)
            else:
                self.interfaces = interfaces


def addresses_of(interfaces: tuple[LanInterface, ...]) -> list[str]:
    """All addresses, IPv4 before IPv6."""
    return sorted((address for each in interfaces for address in each.addresses), key=lambda address: ":" in address)


def _choice(interfaces: tuple[LanInterface, ...]) -> list[str | int]:
    return [entry for interface in interfaces for entry in interface.multicast]


def _version(interfaces: tuple[LanInterface, ...]) -> IPVersion:
    """IPv6 where there is any; without, a machine may not even know the protocol."""
    return IPVersion.All if any(isinstance(entry, int) for entry in _choice(interfaces)) else IPVersion.V4Only


def _words(interface: LanInterface) -> str:
    return f"{interface.name} {' '.join(interface.addresses)}"
