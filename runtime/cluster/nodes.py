"""The nodes that a front end can use: found by mDNS, then asked what they have.

An announcement makes an agent worth asking and no more. Each one announced is asked about once a second, with our key;
one that answers is usable, one that stays silent is gone, whatever mDNS still says.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import deque
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import aiohttp
import msgspec
from yarl import URL

from discovery.browser import Browser
from resources.node import NodeResources, Versions
from resources.parse import UNKNOWN, UNKNOWN_CHIP, tidy
from runtime.agent.messages import NODE_PATH
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from discovery.announcement import Sighting
    from discovery.browser import Change

MAX_ANSWER_BYTES = 64 * 1024
MEMORY_STEP_BYTES = 16 * 2**20
"""Available memory below the total is rounded down to this, so that the usual breathing of a system is no news."""

_MAX_MEMORY_BYTES = 2**50
_log = logging.getLogger(__name__)


class KnownNode(msgspec.Struct, frozen=True):
    """An agent that answered with our key: where it listens and what it has."""

    host: str
    port: int
    resources: NodeResources
    certificate: str = ""
    """The one that its id is the fingerprint of, as PEM."""


@dataclass(frozen=True, slots=True)
class PollTimes:
    """When agents are asked and when they are given up, in seconds."""

    interval: float = 1.0
    """From an answer to the next question."""
    limit: float = 2.0
    """For one answer."""
    silence: float = 3.0
    """After the last answer a node is gone."""
    stranger: float = 5.0
    """From a refusal of our key to the next question."""


USUAL_TIMES = PollTimes()


class NoAnswer(Exception):
    """What listens there is not the agent that was announced, or is not well."""


class NotOurs(Exception):
    """An agent that has another key than we."""


class NodeWatcher:
    """Calls ``on_change`` on the loop's thread with all usable nodes, sorted by name, whenever anything changed.

    The key goes to loopback addresses only, whatever is announced: agents listen nowhere else before they are paired.
    """

    def __init__(
        self,
        key: str,
        on_change: Callable[[tuple[KnownNode, ...]], None],
        times: PollTimes = USUAL_TIMES,
        browser: Callable[[Callable[[Change, Sighting], None]], Browser] = Browser,
    ) -> None:
        self._key = key
        self._on_change = on_change
        self._times = times
        self._browser = browser(self._on_sighting)
        self._session: aiohttp.ClientSession | None = None
        self._polls: dict[str, asyncio.Task[None]] = {}
        self._usable: dict[str, tuple[KnownNode, asyncio.TimerHandle]] = {}
        self._reported: tuple[KnownNode, ...] = ()
        self._report_due: asyncio.Handle | None = None

    async def start(self) -> None:
        """Begin to look. Raises :class:`PomonaError` if this machine's mDNS port cannot be shared."""
        self._session = _new_session(self._key, self._times.limit)
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
        polls = list(self._polls.values())
        self._polls.clear()
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)
        for _, silence in self._usable.values():
            silence.cancel()
        self._usable.clear()
        if self._report_due is not None:
            self._report_due.cancel()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _on_sighting(self, change: Change, sighting: Sighting) -> None:
        if (poll := self._polls.pop(sighting.node_id, None)) is not None:
            poll.cancel()
        if change == "removed":
            self._forget(sighting.node_id)
            return
        known = self._usable.get(sighting.node_id)
        if known is not None and known[0].port != sighting.port:
            self._forget(sighting.node_id)  # it was started again and listens elsewhere
        addresses = [address for address in sighting.addresses if _is_loopback(address)]
        if addresses and self._session is not None:
            asking = self._poll(self._session, sighting.node_id, deque(addresses), sighting.port)
            self._polls[sighting.node_id] = asyncio.create_task(asking)

    async def _poll(self, session: aiohttp.ClientSession, node_id: str, addresses: deque[str], port: int) -> None:
        """Ask one agent for ever, at each of its addresses until one answers."""
        while True:
            pause = self._times.interval
            for _ in range(len(addresses)):
                try:
                    resources = await ask_node(session, addresses[0], port, node_id)
                except NotOurs:
                    self._forget(node_id)
                    pause = self._times.stranger
                    break
                except NoAnswer as error:
                    _log.debug("no answer from node %s at %s port %d: %s", node_id[:12], addresses[0], port, error)
                    addresses.rotate(-1)
                else:
                    self._heard(KnownNode(addresses[0], port, resources))
                    break
            await asyncio.sleep(pause)

    def _heard(self, node: KnownNode) -> None:
        node_id = node.resources.node_id
        if (known := self._usable.get(node_id)) is not None:
            known[1].cancel()
        silence = asyncio.get_running_loop().call_later(self._times.silence, self._forget, node_id)
        self._usable[node_id] = (node, silence)
        self._report_soon()

    def _forget(self, node_id: str) -> None:
        known = self._usable.pop(node_id, None)
        if known is not None:
            known[1].cancel()
            self._report_soon()

    def _report_soon(self) -> None:
        if self._report_due is None:
            self._report_due = asyncio.get_running_loop().call_soon(self._report)

    def _report(self) -> None:
        self._report_due = None
        nodes = sorted((node for node, _ in self._usable.values()), key=_by_name)
        if tuple(nodes) != self._reported:
            self._reported = tuple(nodes)
            self._on_change(self._reported)


async def ask_node(session: aiohttp.ClientSession, host: str, port: int, node_id: str) -> NodeResources:
    """What the agent of ``node_id`` has, as it says itself. Raises :class:`NotOurs` or :class:`NoAnswer`."""
    url = URL.build(scheme="http", host=host, port=port, path=NODE_PATH)
    try:
        async with session.get(url, allow_redirects=False) as response:
            if response.status == HTTPStatus.UNAUTHORIZED:
                raise NotOurs
            if response.status != HTTPStatus.OK:
                raise NoAnswer(f"status {response.status}")
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    raise NoAnswer(f"more than {MAX_ANSWER_BYTES} bytes")
        resources = msgspec.json.decode(body, type=NodeResources)
    except (aiohttp.ClientError, OSError, TimeoutError, msgspec.DecodeError, RecursionError) as error:
        raise NoAnswer(repr(error)) from error
    if resources.node_id != node_id:
        raise NoAnswer("another node answers there")
    return _sane(resources)


def _sane(resources: NodeResources) -> NodeResources:
    """The same with texts that fit labels and memory that sums can trust, the available one rounded."""
    total, available = resources.memory_total_bytes, resources.memory_available_bytes
    if not (0 <= available <= total <= _MAX_MEMORY_BYTES and total > 0):
        raise NoAnswer("memory that no machine has")
    versions = msgspec.structs.asdict(resources.versions)
    return msgspec.structs.replace(
        resources,
        name=tidy(resources.name) or "Unnamed",
        chip=tidy(resources.chip) or UNKNOWN_CHIP,
        memory_available_bytes=total if available == total else available // MEMORY_STEP_BYTES * MEMORY_STEP_BYTES,
        versions=Versions(**{part: tidy(version) or UNKNOWN for part, version in versions.items()}),
    )


def _new_session(key: str, limit_seconds: float) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=limit_seconds),
        auto_decompress=False,  # a small body cannot become a large one
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _by_name(node: KnownNode) -> tuple[str, str]:
    return node.resources.name, node.resources.node_id
