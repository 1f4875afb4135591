"""Finds the nodes that a front end can use, and those that it could pair with.

An announcement, a typed address or one that is remembered makes an agent worth asking and no more. One that is trusted
is asked about once a second with its certificate pinned; it is usable when it answers, and gone when it stays silent,
whatever mDNS still says. One that is not trusted is only asked who it is.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from discovery import tls
from discovery.address import AddressBook, HostPort
from discovery.announcement import clean_name
from discovery.browser import Browser
from runtime.agent.acknowledged import Connections
from runtime.agent.calls import NoAnswer, Refused, ask_hello, first_contact, new_session, nobody_listens
from runtime.agent.local import local_port
from runtime.cluster.asking import ask_node
from runtime.cluster.first_answer import first_answer
from runtime.cluster.node_lists import NodeLists
from runtime.cluster.nodes import KnownNode, UnpairedNode
from runtime.cluster.shelf import Patience
from runtime.cluster.typed_addresses import TypedAddresses
from runtime.cluster.whereabouts import Whereabouts
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable

    import aiohttp

    from discovery.announcement import Sighting
    from discovery.browser import Change
    from discovery.home import Home

_LOOPBACK = "127.0.0.1"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PollTimes:
    """When agents are asked and when they are given up, in seconds."""

    interval: float = 1.0
    """From an answer to the next question."""
    limit: float = 2.0
    """For one answer."""
    silence: float = 3.0
    """After the last answer a node is gone."""
    busy: float = 15.0
    """The same for one whose kernel has acknowledged what was asked: the machine is there, and has no time."""
    alone: float = 0.7
    """For the place that answered last, before the others are asked beside it."""
    following: float = 0.15
    """From one place to the next, while none has answered."""
    stranger: float = 2.0
    """From one question to the next where nobody answered."""
    look: float = 0.5
    """Between two looks at whom this machine trusts now."""


USUAL_TIMES = PollTimes()


class NodeWatcher:
    """Calls ``on_change`` on the loop's thread with all usable nodes, sorted by name, whenever anything changed.

    ``on_unpaired`` gets those that could be paired in the same way. Nobody is told a secret: a trusted node must first
    prove itself, and a stranger is asked without a certificate of ours.
    """

    def __init__(
        self,
        home: Home,
        on_change: Callable[[tuple[KnownNode, ...]], None],
        on_unpaired: Callable[[tuple[UnpairedNode, ...]], None] | None = None,
        times: PollTimes = USUAL_TIMES,
        browser: Callable[[Callable[[Change, Sighting], None]], Browser] = Browser,
    ) -> None:
        self._home = home
        self._book = AddressBook(home.folder)
        self._times = times
        self._browser = browser(self._on_sighting)
        self._connections = Connections()
        self._session: aiohttp.ClientSession | None = None
        self._whereabouts = Whereabouts()
        self._typed = TypedAddresses(times.limit, times.stranger, self._on_typed)
        self._polls: dict[str, asyncio.Task[None]] = {}
        self._tending: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        patience = Patience(times.silence, times.busy, times.look)
        self._lists = NodeLists(patience, self._connections.acknowledged, on_change, on_unpaired)

    async def start(self) -> None:
        """Begin to look. Raises :class:`PomonaError` if this machine's mDNS port cannot be shared."""
        self._session = new_session(self._times.limit, self._connections.connector())
        self._tending = asyncio.create_task(self._tend(), name="trusted nodes")
        try:
            await self._browser.start()
        except OSError as error:
            await self.close()
            raise PomonaError(
                f"Pomona cannot look for its agents: multicast DNS on port 5353 does not work here ({error.strerror})."
            ) from error

    async def close(self) -> None:
        """Stop looking and asking; ``on_change`` is not called any more."""
        await self._browser.close()
        session, self._session = self._session, None
        tasks = [*self._polls.values(), *filter(None, [self._tending])]
        self._polls.clear()
        self._whereabouts.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._typed.close()
        self._lists.close()
        if session is not None:
            await session.close()

    # Where to look ------------------------------------------------------------------------------------------------

    def _on_sighting(self, change: Change, sighting: Sighting) -> None:
        node_id = sighting.node_id
        known = self._lists.usable.get(node_id)
        if change == "removed" or (known is not None and known.port != sighting.port):
            self._lists.drop(node_id)  # it is gone, or was started again and listens elsewhere
        addresses = () if change == "removed" else sighting.addresses
        self._say(node_id, "mdns", tuple(HostPort(address, sighting.port) for address in addresses))

    def _on_typed(self, place: HostPort, node_id: str | None) -> None:
        source = f"typed {place}"
        for other in self._whereabouts.named_by(source):
            if other != node_id:
                self._say(other, source, ())
        if node_id is not None:
            self._say(node_id, source, (place,))

    def _say(self, node_id: str, source: str, places: tuple[HostPort, ...]) -> None:
        if self._session is None or not self._whereabouts.say(node_id, source, places):
            return
        if (poll := self._polls.pop(node_id, None)) is not None:
            poll.cancel()
        if self._whereabouts.of(node_id):
            # One that has just said goodbye may answer for a moment more at an address that is remembered.
            delay = 0.0 if places else self._times.stranger
            asking = self._poll(self._session, node_id, delay)
            self._polls[node_id] = asyncio.create_task(asking, name=f"node {node_id[:12]}")

    async def _tend(self) -> None:
        """Follow whom this machine trusts, which addresses were typed here, and where its own agent listens."""
        trusted: dict[str, tuple[HostPort, ...]] = {}
        while True:
            port = local_port(self._home.folder)
            own = {self._home.identity.node_id: (HostPort(_LOOPBACK, port),)} if port is not None else {}
            newest = own | {node.node_id: node.addresses for node in self._home.trust.paired}
            for node_id in trusted.keys() | newest.keys():
                self._say(node_id, "trust", newest.get(node_id, ()))
            if newest.keys() != trusted.keys():
                self._news.set()
                self._news = asyncio.Event()
            trusted = newest
            self._typed.watch(self._book.all())
            await asyncio.sleep(self._times.look)

    # Asking -------------------------------------------------------------------------------------------------------

    async def _poll(self, session: aiohttp.ClientSession, node_id: str, delay_seconds: float) -> None:
        """Ask one agent for ever, first where it answered last."""
        await asyncio.sleep(delay_seconds)
        places = self._whereabouts.of(node_id)
        times = self._times
        while True:
            news = self._news
            alone = times.alone if node_id in self._lists else times.following
            ask = partial(self._ask, session, node_id)
            try:
                place, _ = await first_answer(places, ask, first_alone_seconds=alone, next_seconds=times.following)
            except NoAnswer as error:
                _log.debug("no answer from node %s at %s: %s", node_id[:12], places[0], error)
            else:
                places.remove(place)
                places.insert(0, place)
            try:
                async with asyncio.timeout(times.interval if node_id in self._lists else times.stranger):
                    await news.wait()
            except TimeoutError:
                pass

    async def _ask(self, session: aiohttp.ClientSession, node_id: str, place: HostPort) -> None:
        """Ask a node at one place, and list it. Raises :class:`NoAnswer`."""
        try:
            await self._ask_trusted_or_stranger(session, node_id, place)
        except NoAnswer as error:
            if nobody_listens(error):
                self._lists.drop(node_id, place)  # its kernel says so: nothing is to be waited for
            raise

    async def _ask_trusted_or_stranger(self, session: aiohttp.ClientSession, node_id: str, place: HostPort) -> None:
        certificate = self._home.certificate_of(node_id)
        if certificate is not None:
            try:
                resources = await ask_node(session, place, node_id, self._home.context_for(certificate))
            except Refused:
                self._lists.drop(node_id)
            else:
                self._lists.unpaired.drop(node_id)
                self._home.trust.remember_address(node_id, place)
                self._lists.usable.put(node_id, KnownNode(place.host, place.port, resources, certificate))
                return
        else:
            self._lists.usable.drop(node_id)
            known = self._lists.unpaired.get(node_id)
            certificate = known.certificate if known else await first_contact(place, self._times.limit)
        if tls.fingerprint_of_pem(certificate) != node_id:
            raise NoAnswer("another node answers there")
        try:
            hello = await ask_hello(session, place, certificate)
        except Refused as error:
            raise NoAnswer(f"it says: {error.reason}") from error
        name = clean_name(hello.name) or "Unnamed"
        found = UnpairedNode(node_id, name, place.host, place.port, certificate, hello.shows_code)
        self._lists.unpaired.put(node_id, found)
