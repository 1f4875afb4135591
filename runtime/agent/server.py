"""The agent's server: its routes behind TLS, each open to the callers that it names.

Listens on the loopback until this machine is paired, shows a pairing code, or was told to; then on every interface.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec
from aiohttp import web
from aiohttp.http import HttpProcessingError

from discovery import tls
from discovery.trust import Role
from resources.memory_parts import NO_WORKERS, total
from runtime.agent.access import Access, Route
from runtime.agent.door import Door
from runtime.agent.job import Job
from runtime.agent.link_probe import Peer
from runtime.agent.link_routes import LinkRoutes
from runtime.agent.messages import FRAME_LIMIT_BYTES, HEARTBEAT_SECONDS, JOB_PATH, NODE_PATH
from runtime.agent.trust_messages import BODY_LIMIT_BYTES
from runtime.agent.trust_routes import TrustRoutes

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from discovery.home import Home
    from discovery.trust import Trusted
    from resources.memory_parts import WorkersMemory
    from resources.node import NodeResources

log = logging.getLogger(__name__)

Reach = Literal["auto", "loopback", "network"]
"""Where an agent listens; ``auto`` is the loopback until the machine is paired or shows a code."""
LOOPBACK_HOSTS = ("127.0.0.1",)
NETWORK_HOSTS = ("0.0.0.0", "::")  # noqa: S104  every caller is checked

_LOOK_SECONDS = 1.0
"""For what another process changed; what this one changes is looked at at once."""
_LINGER_SECONDS = 1.0
"""How long what is left of a refused body is read, so that its sender can hear the answer."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where to listen. Of the ports in ``ports`` the first that is free is taken; 0 is any."""

    ports: tuple[int, ...] = (0,)
    reach: Reach = "auto"


class AgentServer:
    """Serves the node of ``home``; ``resources`` is told what workers hold, and asked for each request."""

    def __init__(
        self,
        home: Home,
        options: ServerOptions,
        resources: Callable[[WorkersMemory], NodeResources],
        log_folder: Path,
        routes: Sequence[Route] = (),
    ) -> None:
        self._home = home
        self._options = options
        self._resources = resources
        self._log_folder = log_folder
        self._jobs: dict[asyncio.Task[None], Job] = {}
        self._listens = asyncio.Lock()
        self._on_network = False
        self._port = 0
        node = resources(NO_WORKERS)
        self._trust = TrustRoutes(home, node.name, node.versions.pomona, self._look_soon)
        self.routes = (
            *self._trust.routes,
            *LinkRoutes(lambda: bool(self._jobs), self._peer, node.chip).routes,
            Route("GET", NODE_PATH, Role.CONTROLLER, self._node),
            Route("GET", JOB_PATH, Role.CONTROLLER, self._job),
            *routes,
        )
        """Everything that can be asked here."""
        self._access = Access(home, self.routes)
        self._runner: web.AppRunner | None = None
        self._door: Door | None = None
        self._following: asyncio.Task[None] | None = None
        self._look = asyncio.Event()
        self._context_of: tuple[tuple[Trusted, ...], ssl.SSLContext] | None = None

    @property
    def on_network(self) -> bool:
        """Whether other machines can reach it now."""
        return self._on_network

    @property
    def busy(self) -> bool:
        """Whether a job runs here."""
        return bool(self._jobs)

    async def start(self) -> int:
        """Listen; returns the port. Raises :class:`OSError` if it is taken."""
        application = web.Application(middlewares=[self._access.check], client_max_size=BODY_LIMIT_BYTES)
        for route in self.routes:
            application.router.add_route(route.method, route.path, route.handler)
        self._runner = web.AppRunner(
            application, logger=_http_log(), access_log=None, shutdown_timeout=1.0, lingering_time=_LINGER_SECONDS
        )
        await self._runner.setup()
        assert self._runner.server is not None  # setup made it
        self._door = Door(self._runner.server, self._context)
        try:
            self._port = await self._first_free(self._door)
        except OSError:
            await self._runner.cleanup()
            raise
        self._access.start()
        self._following = asyncio.create_task(self._follow(self._door), name="reach")
        return self._port

    async def close(self) -> None:
        """End every job and its workers, then stop listening."""
        for task, job in list(self._jobs.items()):
            await job.close()
            await asyncio.wait({task})
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if self._door is not None:
            await self._door.close()
        await self._access.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _first_free(self, door: Door) -> int:
        self._on_network = self._wants_network()
        for port in self._options.ports[:-1]:
            try:
                return await self._listen(door, port)
            except OSError as error:
                log.info("port %d is not free (%s): another is taken", port, error.strerror)
        return await self._listen(door, self._options.ports[-1])

    async def _listen(self, door: Door, port: int) -> int:
        if not self._on_network:
            return await door.listen(LOOPBACK_HOSTS, port)
        try:
            return await door.listen(NETWORK_HOSTS, port)
        except OSError:  # a system without IPv6, or its port is taken
            return await door.listen(NETWORK_HOSTS[:1], port)

    def _wants_network(self) -> bool:
        match self._options.reach:
            case "auto":
                return bool(self._home.trust.paired) or self._trust.shows_code
            case "network":
                return True
            case "loopback":
                return False

    def _look_soon(self) -> None:
        self._look.set()

    async def _follow(self, door: Door) -> None:
        """Open to the network and close again as the reasons come and go."""
        while True:
            self._look.clear()
            if self._wants_network() != self._on_network:
                self._on_network = not self._on_network
                log.info("listening %s", "on every interface" if self._on_network else "on the loopback alone")
                try:
                    await self._listen(door, self._port)
                except OSError as error:
                    log.error("port %d cannot be used there (%s)", self._port, error.strerror)  # noqa: TRY400  no fault of ours
                    self._on_network = False
                    await self._listen(door, self._port)
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._look.wait()
            except TimeoutError:
                pass

    def _context(self) -> ssl.SSLContext:
        """For the next caller: trusts whom the node trusts now."""
        nodes = self._home.trust.nodes
        if self._context_of is None or self._context_of[0] != nodes:
            own = self._home.identity
            trusted = [own.certificate_pem, *(node.certificate for node in nodes)]
            self._context_of = (nodes, tls.server_context(own.certificate_path, own.key_path, trusted))
        return self._context_of[1]

    async def _node(self, _request: web.Request) -> web.StreamResponse:
        workers = total(job.memory for job in self._jobs.values())
        return web.Response(body=msgspec.json.encode(self._resources(workers)), content_type="application/json")

    async def _job(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_SECONDS, max_msg_size=FRAME_LIMIT_BYTES)
        await socket.prepare(request)
        job = Job(socket, self._home.identity, self._may_listen, self._log_folder)
        # A task of its own: aiohttp cancels a handler when the client goes, and the workers must be ended even then.
        task = asyncio.create_task(job.serve(), name="job")
        self._jobs[task] = job
        task.add_done_callback(self._forget)
        with self._access.attending(request, socket):
            await asyncio.shield(task)
        return socket

    def _peer(self, node_id: str, port: int) -> Peer | None:
        """How to call another node, if it is trusted."""
        certificate = self._home.certificate_of(node_id)
        return Peer(node_id, port, self._home.context_for(certificate)) if certificate is not None else None

    def _may_listen(self, host: str) -> bool:
        """Whether workers may listen on an address of this machine."""
        return self._on_network or ipaddress.ip_address(host.partition("%")[0]).is_loopback

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._jobs[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a job failed", exc_info=error)


def _http_log() -> logging.Logger:
    """Says nothing of requests that are none: otherwise any stranger could fill the disk with tracebacks."""
    http_log = logging.getLogger(f"{__name__}.http")
    if not http_log.filters:
        http_log.addFilter(lambda record: not isinstance((record.exc_info or (None, None))[1], HttpProcessingError))
    return http_log
