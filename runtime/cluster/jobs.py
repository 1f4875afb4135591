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
from runtime.signs import Signs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import aiohttp

    from discovery.home import Home
    from runtime.agent.messages import AgentMessage
    from runtime.cluster.launch import RankState
    from runtime.cluster.nodes import KnownNode
    from runtime.engine.orders import Connect, Rebuild

_END_SECONDS = 10.0
SILENT_SECONDS = 4.0
"""An agent says every second that it is there, a loaded worker too."""
_KNOCK_SECONDS = 2.0
"""After so long something is sent to a silent node, to see whether it arrives."""


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
        self._signs: Signs[str] = Signs()
        self._knocks: dict[str, asyncio.Task[None]] = {}
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

    def look(self, now_seconds: float) -> None:
        """Notice nodes that have fallen silent; to be called several times a second."""
        self._signs.look(now_seconds)
        for node_id in self._signs.silent(_KNOCK_SECONDS):
            if node_id not in self._knocks:
                self._knocks[node_id] = asyncio.create_task(self._jobs[node_id].knock(), name="knock")
        for node_id in self._signs.silent(SILENT_SECONDS):
            self._leave(self._nodes[node_id], self._why_silent(node_id))

    def silent_seconds(self, node_id: str) -> float:
        """For how long the agent of a node has said nothing."""
        return self._signs.silent_seconds(node_id)

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
        self._signs.forget(node_id)
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
        tasks = [*self._listeners, *self._knocks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._closing, *(job.close() for job in self._jobs.values()), return_exceptions=True)

    async def _listen(self, node: KnownNode) -> None:
        node_id, name = node.resources.node_id, node.resources.name
        reason = f"{name} is gone: it was quit, went to sleep or lost its network."
        self._heard(node_id)
        try:
            async for message in self._jobs[node_id].messages():
                self._heard(node_id)
                if isinstance(message, JobEnded):
                    if message.memory is not None:
                        self.memory.append(MemoryBack(node_id, name, message.memory))
                    self._note_end(node_id)
                else:
                    self._take(node, message)
        except PomonaError as error:
            reason = str(error)
        self._leave(node, reason)

    def _heard(self, node_id: str) -> None:
        self._signs.hear(node_id)
        if (knock := self._knocks.pop(node_id, None)) is not None:
            knock.cancel()

    def _leave(self, node: KnownNode, reason: str) -> None:
        """Nothing more comes from this node, which is told once and only of one that still has a part."""
        node_id = node.resources.node_id
        is_news = node_id in self._jobs and node_id not in self._ended
        self._note_end(node_id)
        if is_news:
            self._on_gone(node, reason)

    def _why_silent(self, node_id: str) -> str:
        name = self._nodes[node_id].resources.name
        if self._jobs[node_id].arrives:
            return f"Pomona on {name} has stopped: the machine is in reach, but nothing answers there."
        return f"{name} is out of reach: it was switched off, went to sleep or lost its network."

    def _note_end(self, node_id: str) -> None:
        self._signs.forget(node_id)
        self._ended.add(node_id)
        self._changed.set()
