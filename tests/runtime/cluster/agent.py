"""A server that answers as an agent does, for whatever asks agents."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from discovery import tls
from discovery.announcement import Sighting
from resources.node import NodeResources, Versions
from runtime.cluster.nodes import KnownNode, UnpairedNode

if TYPE_CHECKING:
    from discovery.home import Home

GIB = 2**30


def resources_of(name: str, node_id: str | None = None, available: int = 4 * GIB) -> NodeResources:
    versions = Versions("0.1.0", "0.32.4", "0.32.2", "3.11.7", "macOS 26.1")
    return NodeResources(node_id or secrets.token_hex(32), name, "Apple M4", 16 * GIB, available, False, versions)


class Agent:
    """A server that answers as an agent does, until a test changes ``body``, ``status``, ``trusts`` or ``awake``."""

    def __init__(self, name: str, home: Home, peer: Home) -> None:
        self.home = home
        self.resources = resources_of(name, home.identity.node_id)
        self.boot_id = secrets.token_hex(8)
        self.peer = peer
        self.trusts = True
        self.status = 200
        self.body: bytes | None = None
        self.headers: dict[str, str] = {}
        self.awake = asyncio.Event()
        self.awake.set()
        self.asked = 0
        self.port = 0
        self._news = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_get("/v1/node", self._answer)
        app.router.add_get("/v1/hello", self._hello)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        own = self.home.identity
        trusted = [self.peer.identity.certificate_pem]
        context = tls.server_context(own.certificate_path, own.key_path, trusted)
        site = web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=context)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        self._news.set()
        await self.awake.wait()
        assert request.transport is not None
        shown = tls.peer_fingerprint(request.transport.get_extra_info("ssl_object"))
        if not self.trusts or shown != self.peer.identity.node_id:
            return web.Response(status=403)
        body = msgspec.json.encode(self.resources) if self.body is None else self.body
        return web.Response(body=body, status=self.status, headers=self.headers)

    async def _hello(self, _request: web.Request) -> web.Response:
        return web.json_response({"id": self.resources.node_id, "name": self.resources.name, "version": "0.1.0"})

    async def until_asked(self, more: int = 1) -> None:
        """Until ``more`` questions from now have arrived."""
        enough = self.asked + more
        async with asyncio.timeout(10):
            while self.asked < enough:
                self._news.clear()
                await self._news.wait()

    def sighting(self, addresses: tuple[str, ...] = ("127.0.0.1",)) -> Sighting:
        return Sighting(self.resources.node_id, "as announced", self.boot_id, addresses, self.port)

    def known(self, host: str = "127.0.0.1") -> KnownNode:
        return KnownNode(host, self.port, self.resources, self.home.identity.certificate_pem)

    def unpaired(self) -> UnpairedNode:
        pem = self.home.identity.certificate_pem
        return UnpairedNode(self.resources.node_id, self.resources.name, "127.0.0.1", self.port, pem)
