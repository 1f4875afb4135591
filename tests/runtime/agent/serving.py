"""Real agents' servers in this process, with homes of their own, and callers of every kind."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discovery.address import HostPort
from discovery.home import Home, temporary_home
from resources.node import NodeResources, Versions
from runtime.agent.models.service import ModelService
from runtime.agent.server import AgentServer, ServerOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from runtime.agent.server import Reach

GIB = 1 << 30
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Served:
    """An agent's server that listens, and its home."""

    home: Home
    server: AgentServer
    place: HostPort

    @property
    def pem(self) -> str:
        return self.home.identity.certificate_pem

    @property
    def node_id(self) -> str:
        return self.home.identity.node_id


def resources_of(home: Home, name: str) -> NodeResources:
    versions = Versions("0.1.0", "0.32.4", "0.32.2", "3.11.7", "macOS 26.1")
    return NodeResources(home.identity.node_id, name, "Apple M4", 16 * GIB, 4 * GIB, False, versions)


@asynccontextmanager
async def serving(name: str = "Studio", reach: Reach = "loopback") -> AsyncIterator[Served]:
    """An agent's server on the loopback."""
    async with AsyncExitStack() as stack:
        home = stack.enter_context(temporary_home())
        models = ModelService(home)
        stack.callback(models.close)
        logs = home.folder / secrets.token_hex(4)
        server = AgentServer(
            home, ServerOptions(reach=reach), lambda _workers: resources_of(home, name), logs, models.routes
        )
        port = await server.start()
        stack.push_async_callback(server.close)
        yield Served(home, server, HostPort(LOOPBACK, port))
