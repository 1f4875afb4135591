"""The dialling end of a measurement: proves who answers at an address, then times small messages and a short bulk.

The bulk is longer than what a rate limiter or a switch lets through at once, and short enough to disturb nobody.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import aiohttp
import msgspec

from discovery.address import HostPort
from discovery.tls import peer_fingerprint
from runtime.agent.calls import url_of
from runtime.agent.connector import Connector
from runtime.agent.link_messages import (
    BULK_PATH,
    ECHO_BYTES,
    ECHO_PATH,
    BulkReceived,
    DeadAddress,
    MeasuredLink,
    MeasuredLinks,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from yarl import URL

ECHO_COUNT = 20
BULK_SECONDS = 0.3
_CHUNK = bytes(256 << 10)
_HELLO_SECONDS = 1.5
_MEASURE_SECONDS = 15.0
_ANSWER_LIMIT_BYTES = 4096


class NoLink(Exception):
    """The expected node does not answer there, or does not let itself be measured."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The other node, and how to call it."""

    node_id: str
    port: int
    context: ssl.SSLContext
    """Lets nobody but that node answer."""

    def url(self, address: str, path: str) -> URL:
        """Of one of its routes."""
        return url_of("https", HostPort(address, self.port), path)


async def measure_links(peer: Peer, addresses: Sequence[str], same_way: Callable[[str, str], object]) -> MeasuredLinks:
    """Every address where ``peer`` proves itself, measured one after the other.

    ``same_way(own address, address)`` names the cable between two addresses: of several addresses on the same one
    only the first is measured.
    """
    async with aiohttp.ClientSession(
        connector=Connector(peer.context, force_close=True), cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        proofs = await asyncio.gather(*(_prove(peer, address) for address in addresses))
        measured: dict[object, MeasuredLink] = {}
        dead: list[DeadAddress] = []
        for address, proof in zip(addresses, proofs, strict=True):
            if isinstance(proof, NoLink):
                dead.append(DeadAddress(address, str(proof)))
            elif (way := same_way(proof, address)) not in measured:
                try:
                    measured[way] = await _measure(session, peer, address)
                except NoLink as error:
                    dead.append(DeadAddress(address, str(error)))
    return MeasuredLinks(tuple(measured.values()), tuple(dead))


async def _prove(peer: Peer, address: str) -> str | NoLink:
    """Our own address on the way to ``address``, if ``peer`` and nobody else answers there."""
    try:
        async with asyncio.timeout(_HELLO_SECONDS):
            _reader, writer = await asyncio.open_connection(address, peer.port, ssl=peer.context)
    except TimeoutError:
        return NoLink("nothing answers")
    except ssl.SSLCertVerificationError:
        return NoLink("another node answers")
    except OSError as error:
        return NoLink(os.strerror(error.errno) if error.errno else str(error))
    own = _plain(writer.get_extra_info("sockname"))
    answers = peer_fingerprint(writer.get_extra_info("ssl_object"))
    writer.transport.abort()
    return own if answers == peer.node_id else NoLink("another node answers")


async def _measure(session: aiohttp.ClientSession, peer: Peer, address: str) -> MeasuredLink:
    try:
        async with asyncio.timeout(_MEASURE_SECONDS):
            own, rtt_seconds = await _rtt(session, peer, address)
            return MeasuredLink(own, address, rtt_seconds, await _bandwidth(session, peer, address))
    except aiohttp.WSServerHandshakeError as error:
        raise NoLink(_refusal(error.status)) from error
    except TimeoutError as error:
        raise NoLink(f"it took longer than {_MEASURE_SECONDS:.0f} s") from error
    except (aiohttp.ClientError, OSError, msgspec.DecodeError) as error:
        raise NoLink(str(error) or type(error).__name__) from error


async def _rtt(session: aiohttp.ClientSession, peer: Peer, address: str) -> tuple[str, float]:
    """Our own address, and the lower quartile of the times: the upper ones tell how busy the machines were."""
    message, times = bytes(ECHO_BYTES), []
    async with session.ws_connect(peer.url(address, ECHO_PATH), max_msg_size=2 * ECHO_BYTES) as socket:
        own = _plain(socket.get_extra_info("sockname"))
        for _ in range(ECHO_COUNT + 1):
            sent_seconds = time.perf_counter()
            await socket.send_bytes(message)
            if await socket.receive_bytes() != message:
                raise NoLink("what came back is not what was sent")
            times.append(time.perf_counter() - sent_seconds)
    return own, sorted(times[1:])[ECHO_COUNT // 4]


async def _bandwidth(session: aiohttp.ClientSession, peer: Peer, address: str) -> float:
    async with session.post(peer.url(address, BULK_PATH), data=_bulk(), allow_redirects=False) as response:
        if response.status != HTTPStatus.OK:
            raise NoLink(_refusal(response.status))
        received = msgspec.json.decode(await response.content.read(_ANSWER_LIMIT_BYTES), type=BulkReceived)
    if not received.byte_count or not received.seconds:
        raise NoLink("nothing of the bulk arrived")
    return received.byte_count / received.seconds


async def _bulk() -> AsyncIterator[bytes]:
    end_seconds = time.monotonic() + BULK_SECONDS
    while time.monotonic() < end_seconds:
        yield _CHUNK


def _refusal(status: int) -> str:
    if status == HTTPStatus.CONFLICT:
        return "it is running a model, or is being measured by another node"
    return f"it refuses ({status})"


def _plain(socket_name: tuple[str, int]) -> str:
    """The address in a socket's name; a link-local one without its scope."""
    return socket_name[0].partition("%")[0]
