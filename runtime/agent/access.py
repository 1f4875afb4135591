"""Who may do what: every route names the least role that it takes, and every request is looked at again.

A removed node is therefore refused at its next request, and its open WebSockets are closed within a moment.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.web_urldispatcher import SystemRoute

from discovery.allowance import Allowances
from discovery.tls import peer_fingerprint
from discovery.trust import Role

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from discovery.home import Home

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)

REMOVED_CODE = 4403
"""With this a WebSocket closes whose caller is not trusted any more."""
REQUESTS_PER_SECOND, BURST = 20.0, 40
"""What strangers at one address may ask."""
_ADDRESSES = 1024
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that an agent can be asked, and who may ask it."""

    method: str
    path: str
    least: Role
    handler: Handler


class Access:
    """Checks each request against the trust of ``home``. A route that nobody declared is open to the owner alone."""

    def __init__(self, home: Home, routes: Sequence[Route]) -> None:
        self._home = home
        self._least = {(route.method, route.path): route.least for route in routes}
        self._allowances = Allowances(BURST, REQUESTS_PER_SECOND, _ADDRESSES)
        self._sockets: dict[web.WebSocketResponse, tuple[str, Role]] = {}
        self._watching: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[bool]] = set()

    def start(self) -> None:
        """Begin to watch the open WebSockets."""
        self._watching = asyncio.create_task(self._watch(), name="access")

    async def close(self) -> None:
        """Stop watching."""
        if self._watching is not None:
            self._watching.cancel()
        await asyncio.gather(*filter(None, [self._watching]), *self._closing, return_exceptions=True)

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The middleware in front of every route, also of those that are not there."""
        role = self._home.role_of(fingerprint_of(request))
        if role is Role.STRANGER and not self._may_ask(request):
            raise web.HTTPTooManyRequests(text="Too many requests; wait a second.")
        if role < self._least_for(request):
            raise web.HTTPForbidden(text="This node does not know you; pair with it first.")
        return await handler(request)

    @contextmanager
    def attending(self, request: web.Request, socket: web.WebSocketResponse) -> Iterator[None]:
        """Have ``socket`` closed if its caller loses the role that the route takes, for the time of the block."""
        self._sockets[socket] = (fingerprint_of(request) or "", self._least_for(request))
        try:
            yield
        finally:
            del self._sockets[socket]

    def _least_for(self, request: web.Request) -> Role:
        route = request.match_info.route
        if isinstance(route, SystemRoute):  # there is no such path: strangers need not know even that
            return Role.PEER
        path = route.resource.canonical if route.resource is not None else ""
        return self._least.get((route.method, path), Role.OWNER)

    def _may_ask(self, request: web.Request) -> bool:
        return self._allowances.take(request.remote or "", asyncio.get_running_loop().time())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for socket, (fingerprint, least) in list(self._sockets.items()):
                if self._home.role_of(fingerprint) < least and not socket.closed:
                    log.info("node %s is not trusted any more: its connection is closed", fingerprint[:12])
                    closing = asyncio.create_task(socket.close(code=REMOVED_CODE, message=b"removed"))
                    self._closing.add(closing)
                    closing.add_done_callback(self._closing.discard)
                    self._sockets[socket] = (fingerprint, Role.STRANGER)


def fingerprint_of(request: web.Request) -> str | None:
    """The id of the node that asks, proved by the handshake; None if it showed no certificate."""
    connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
    return peer_fingerprint(connection) if connection is not None else None
