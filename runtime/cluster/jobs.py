"""The job that a session has open on each agent: starts workers there, passes orders on, hears of their end."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from discovery.address import HostPort
from runtime.agent.client import JobClient
from runtime.agent.messages import JobEnded
from runtime.cluster.messages import MemoryBack
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import aiohttp

    from discovery.home import Home
    from runtime.agent.messages import AgentMessage
    from runtime.cluster.launch import RankState
    from runtime.cluster.nodes import KnownNode
    from runtime.engine.orders import Connect, Rebuild

_END_SECONDS = 10.0


class Jobs:
    """``take`` gets what each agent says, ``on_gone`` the node of one whose connection ended, with the reason."""

    def __init__(
        self,
        http: aiohttp.ClientSession,
        home: Home,
        take: Callable[[KnownNode, AgentMessage], None],
        on_gone: Callable[[KnownNode, str], None],
    ) -> None:
        self._http = http
        self._home = home
        self._take = take
        self._on_gone = on_gone
        self._jobs: dict[str, JobClient] = {}
        self._nodes: dict[str, KnownNode] = {}
        self._ended: set[str] = set()
        self.memory: list[MemoryBack] = []
        """What came back on the nodes that have ended their workers."""
        self._listeners: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()
        self._closing: list[asyncio.Task[None]] = []

    async def open(self, nodes: Iterable[KnownNode]) -> None:
        """Open a job on each node that has none yet. Raises :class:`PomonaError` naming one that does not answer."""
        for node in nodes:
            node_id, name = node.resources.node_id, node.resources.name
            if node_id not in self._jobs:
                place, context = HostPort(node.host, node.port), self._home.context_for(node.certificate)
                self._jobs[node_id] = await JobClient.open(self._http, place, context, name)
                self._nodes[node_id] = node
                self._listeners.append(asyncio.create_task(self._listen(node), name=f"job on {name}"))

    async def start(self, rank: RankState) -> None:
        """Start the worker of ``rank`` with its launch order."""
        await self._jobs[rank.planned.node_id].start_rank(rank.launch)

    async def order(self, rank: RankState, order: Connect | Rebuild) -> None:
        """Give the worker of ``rank`` an order."""
        await self._jobs[rank.planned.node_id].order_rank(rank.number, order)

    async def end_rank(self, rank: RankState) -> None:
        """Have the worker of ``rank`` ended, by force if it does not listen; a node that is gone has none."""
        with contextlib.suppress(PomonaError):
            await self._jobs[rank.planned.node_id].end_rank(rank.number)

    def forget(self, node_id: str) -> None:
        """This node is gone, with all that ran there."""
        job = self._jobs.pop(node_id, None)
        if job is not None:
            self._ended.discard(node_id)
            self._closing.append(asyncio.create_task(job.close(), name="lost job"))

    async def end(self) -> list[str]:
        """Have every agent end its workers; returns the names of nodes that did not confirm it in time."""
        for node_id, job in self._jobs.items():
            if node_id not in self._ended:
                try:
                    await job.end()
                except PomonaError:
                    self._ended.add(node_id)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                while self._jobs.keys() - self._ended:
                    self._changed.clear()
                    await self._changed.wait()
        return [self._nodes[node_id].resources.name for node_id in self._jobs.keys() - self._ended]

    async def close(self) -> None:
        """Give up every lease."""
        for listener in self._listeners:
            listener.cancel()
        await asyncio.gather(*self._listeners, return_exceptions=True)
        await asyncio.gather(*self._closing, *(job.close() for job in self._jobs.values()), return_exceptions=True)

    async def _listen(self, node: KnownNode) -> None:
        node_id, name = node.resources.node_id, node.resources.name
        reason = f"{name} is gone: it was quit, went to sleep or lost its network."
        try:
            async for message in self._jobs[node_id].messages():
                if isinstance(message, JobEnded):
                    if message.memory is not None:
                        self.memory.append(MemoryBack(node_id, name, message.memory))
                    self._note_end(node_id)
                else:
                    self._take(node, message)
        except PomonaError as error:
            reason = str(error)
        self._note_end(node_id)
        if node_id in self._jobs:
            self._on_gone(node, reason)

    def _note_end(self, node_id: str) -> None:
        self._ended.add(node_id)
        self._changed.set()
