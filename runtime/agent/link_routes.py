"""The agent's routes for links: what interfaces it has, being measured, and measuring.

Nothing is measured while a job runs here, and one measurement at a time: two would each halve the other.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import msgspec
from aiohttp import WSMsgType, web

from discovery.trust import Role
from resources.interfaces import network_interfaces
from resources.links import candidates, interface_with
from resources.rdma_verdict import Thunderbolt
from resources.survey import ask_links
from runtime.agent.access import Route
from runtime.agent.link_messages import (
    BULK_PATH,
    ECHO_BYTES,
    ECHO_PATH,
    INTERFACES_PATH,
    MEASURE_PATH,
    THUNDERBOLT_PATH,
    BulkReceived,
    MeasureLinks,
)
from runtime.agent.link_probe import Peer, measure_links

if TYPE_CHECKING:
    from collections.abc import Callable

    from resources.links import NetworkInterface

_BULK_LIMIT_BYTES = 4 << 30
_BULK_LIMIT_SECONDS = 10.0
_ECHO_LIMIT = 200
_ECHO_WAIT_SECONDS = 5.0


class LinkRoutes:
    """The routes, and what answers on them.

    ``busy`` tells whether a job runs here, ``peer`` how to call a node if it is trusted; ``chip`` is this node's.
    """

    def __init__(self, busy: Callable[[], bool], peer: Callable[[str, int], Peer | None], chip: str) -> None:
        self._chip = chip
        self._busy = busy
        self._peer = peer
        self._measuring = asyncio.Lock()
        self._measured = asyncio.Lock()
        self.routes = (
            Route("GET", INTERFACES_PATH, Role.CONTROLLER, self.interfaces),
            Route("GET", THUNDERBOLT_PATH, Role.CONTROLLER, self.thunderbolt),
            Route("POST", MEASURE_PATH, Role.CONTROLLER, self.measure),
            Route("GET", ECHO_PATH, Role.PEER, self.echo),
            Route("POST", BULK_PATH, Role.PEER, self.bulk),
        )

    async def interfaces(self, _request: web.Request) -> web.StreamResponse:
        """What leads to other machines now."""
        return _json(await network_interfaces())

    async def thunderbolt(self, _request: web.Request) -> web.StreamResponse:
        """What cables lead to other Macs now; takes as long as the system's own report."""
        return _json((await ask_links()).thunderbolt_of(self._chip) if sys.platform == "darwin" else Thunderbolt())

    async def echo(self, request: web.Request) -> web.StreamResponse:
        """Send back what comes."""
        self._refuse_if(self._measured)
        async with self._measured:
            socket = web.WebSocketResponse(max_msg_size=2 * ECHO_BYTES, receive_timeout=_ECHO_WAIT_SECONDS)
            await socket.prepare(request)
            for _ in range(_ECHO_LIMIT):
                message = await socket.receive()
                if message.type is not WSMsgType.BINARY or self._busy():
                    break
                await socket.send_bytes(message.data)
            await socket.close()
        return socket

    async def bulk(self, request: web.Request) -> web.StreamResponse:
        """Count what comes, and throw it away."""
        self._refuse_if(self._measured)
        async with self._measured, asyncio.timeout(_BULK_LIMIT_SECONDS):
            byte_count, first_seconds, last_seconds = 0, 0.0, 0.0
            async for chunk in request.content.iter_any():
                last_seconds = time.monotonic()
                if first_seconds:
                    byte_count += len(chunk)
                else:
                    first_seconds = last_seconds  # what came before the clock started is not counted
                if self._busy() or byte_count > _BULK_LIMIT_BYTES:
                    raise web.HTTPConflict(text="Not now.")
        return _json(BulkReceived(byte_count, last_seconds - first_seconds))

    async def measure(self, request: web.Request) -> web.StreamResponse:
        """Dial another node at all of its addresses and measure each way that leads to it."""
        try:
            wanted = msgspec.json.decode(await request.read(), type=MeasureLinks)
        except (msgspec.DecodeError, RecursionError) as error:
            raise web.HTTPBadRequest(text=f"This is no request to measure links: {error}") from error
        peer = self._peer(wanted.node_id, wanted.port)
        if peer is None:
            raise web.HTTPNotFound(text="That node is not trusted here.")
        self._refuse_if(self._measuring)
        async with self._measuring:

            def same_way(own_address: str, address: str) -> tuple[NetworkInterface | None, NetworkInterface | None]:
                return interface_with(wanted.own_interfaces, own_address), interface_with(wanted.interfaces, address)

            addresses = candidates(wanted.own_interfaces, wanted.interfaces)
            return _json(await measure_links(peer, addresses, same_way))

    def _refuse_if(self, lock: asyncio.Lock) -> None:
        if self._busy() or lock.locked():
            raise web.HTTPConflict(text="This node is running a model or measures already.")


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
