"""The agent's routes: who am I, what do I have, run this job. All but the first need the key."""

from __future__ import annotations

import asyncio
import hmac
import logging
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from runtime.agent.job import Job
from runtime.agent.messages import FRAME_LIMIT_BYTES, HEARTBEAT_SECONDS, HELLO_PATH, JOB_PATH, NODE_PATH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from discovery.identity import Identity
    from resources.node import NodeResources

log = logging.getLogger(__name__)

_BODY_LIMIT_BYTES = 64 << 10


class AgentServer:
    """Serves one node on ``host``; ``resources`` is asked for each request that wants to know."""

    def __init__(
        self,
        host: str,
        port: int,
        key: str,
        identity: Identity,
        resources: Callable[[], NodeResources],
        log_folder: Path,
    ) -> None:
        self._host = host
        self._identity = identity
        self._wanted_port = port
        self._key = key
        self._resources = resources
        self._log_folder = log_folder
        self._jobs: dict[asyncio.Task[None], web.WebSocketResponse] = {}
        self._runner: web.AppRunner | None = None

    async def start(self) -> int:
        """Listen; returns the port. Raises :class:`OSError` if it is taken."""
        application = web.Application(middlewares=[self._check_key], client_max_size=_BODY_LIMIT_BYTES)
        application.router.add_get(HELLO_PATH, self._hello)
        application.router.add_get(NODE_PATH, self._node)
        application.router.add_get(JOB_PATH, self._job)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        self._runner = runner
        await web.TCPSite(runner, self._host, self._wanted_port).start()
        port: int = runner.addresses[0][1]
        return port

    async def close(self) -> None:
        """End every job and its workers, then stop listening."""
        for task, socket in list(self._jobs.items()):
            await socket.close()
            await asyncio.wait({task})
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _check_key(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        expected = f"Bearer {self._key}".encode()
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if request.path != HELLO_PATH and not hmac.compare_digest(expected, given):
            raise web.HTTPUnauthorized(text="This agent needs its key.")
        return await handler(request)

    async def _hello(self, _request: web.Request) -> web.StreamResponse:
        resources = self._resources()
        return web.json_response(
            {"id": resources.node_id, "name": resources.name, "version": resources.versions.pomona}
        )

    async def _node(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(body=msgspec.json.encode(self._resources()), content_type="application/json")

    async def _job(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_SECONDS, max_msg_size=FRAME_LIMIT_BYTES)
        await socket.prepare(request)
        # A task of its own: aiohttp cancels a handler when the client goes, and the workers must be ended even then.
        task = asyncio.create_task(Job(socket, self._host, self._identity, self._log_folder).serve(), name="job")
        self._jobs[task] = socket
        task.add_done_callback(self._forget)
        await asyncio.shield(task)
        return socket

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._jobs[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a job failed", exc_info=error)
