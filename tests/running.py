"""Real agents, sessions and processes for tests."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from runtime.cluster.client import SessionClient
from runtime.cluster.messages import Chat, ChatMessage, Failed, Finished, Message, Ready, Rejected, Text
from runtime.cluster.node_watcher import NodeWatcher
from runtime.models.planning_layout import read_planning_layout
from runtime.planning.from_resources import plan_nodes
from runtime.planning.plan import Plan, make_plan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from discovery.home import Home
    from runtime.agent.messages import AgentStarted
    from runtime.cluster.messages import ServerMessage
    from runtime.cluster.nodes import KnownNode
    from runtime.planning.plan import Mode

M = TypeVar("M", bound=Message)

LOAD_SECONDS = 90


@dataclass(frozen=True)
class Agents:
    """Running virtual agents, in the order of their names, and the home that they trust."""

    home: Home
    started: Sequence[AgentStarted]


@dataclass
class Running:
    """A session that is ready, and where its events come from."""

    client: SessionClient
    events: AsyncIterator[ServerMessage]
    ready: Ready = field(init=False)

    async def next_of(self, *kinds: type[M]) -> M:
        async for event in self.events:
            if isinstance(event, kinds):
                return event
        raise AssertionError("the session went silent")

    async def ask(self, prompt: str, request_id: str = "question", **options: Any) -> tuple[str, list[int], Finished]:
        """One answer, whole: its text, its tokens, and how it ended."""
        await self.client.send(Chat(request_id, (ChatMessage("user", prompt),), **options))
        text = ""
        tokens: list[int] = []
        while True:
            event = await self.next_of(Text, Finished, Failed, Rejected)
            if isinstance(event, Text) and event.request_id == request_id:
                text += event.text
                tokens += event.token_ids
            elif isinstance(event, Finished) and event.request_id == request_id:
                return text, tokens, event
            elif isinstance(event, Failed | Rejected):
                raise AssertionError(event.reason)


async def find(agents: Agents) -> list[KnownNode]:
    """The agents' nodes, found by mDNS as any front end does."""
    found: asyncio.Queue[tuple[KnownNode, ...]] = asyncio.Queue()
    watcher = NodeWatcher(agents.home, found.put_nowait)
    await watcher.start()
    try:
        async with asyncio.timeout(30):
            while True:
                nodes = {node.resources.node_id: node for node in await found.get()}
                if all(agent.node_id in nodes for agent in agents.started):
                    return [nodes[agent.node_id] for agent in agents.started]
    finally:
        await watcher.close()


def plan_for(folder: Path, nodes: Sequence[KnownNode], split: Sequence[int] | None, mode: Mode = "pipeline") -> Plan:
    layout = read_planning_layout(folder)
    plan = make_plan(layout, plan_nodes(layout, (node.resources for node in nodes)), split, mode)
    assert isinstance(plan, Plan), plan
    return plan


@asynccontextmanager
async def session(
    agents: Agents,
    folder: Path,
    split: Sequence[int] | None,
    mode: Mode = "pipeline",
    node_count: int | None = None,
    *,
    keep_running: bool = False,
) -> AsyncIterator[Running]:
    """A session over the first ``node_count`` agents, loaded and ready."""
    nodes = (await find(agents))[:node_count]
    plan = plan_for(folder, nodes, split, mode)
    client = await SessionClient.start(plan, folder, nodes, agents.home.folder, keep_running=keep_running)
    try:
        running = Running(client, client.events())
        async with asyncio.timeout(LOAD_SECONDS):
            ready = await running.next_of(Ready, Failed)
        assert isinstance(ready, Ready), ready
        running.ready = ready
        yield running
    finally:
        await client.close()


def workers(agents: Agents) -> list[psutil.Process]:
    """Every worker process that the agents have now."""
    found = []
    for agent in agents.started:
        if psutil.pid_exists(agent.pid):
            found += [child for child in psutil.Process(agent.pid).children(recursive=True) if runs(child, "worker")]
    return found


def runs(process: psutil.Process, command: str) -> bool:
    """Whether a process is alive and runs this command of Pomona."""
    try:
        return command in process.cmdline()
    except psutil.NoSuchProcess:  # or a zombie, which is one of those
        return False


def controllers() -> list[psutil.Process]:
    """Controllers that this test process started itself: a command that it started may have one of its own."""
    return [child for child in psutil.Process().children() if runs(child, "controller")]


async def all_gone(processes: Sequence[psutil.Process], within_seconds: float = 15) -> None:
    """Wait until none of them runs; fails if one still does."""
    _gone, alive = await asyncio.to_thread(psutil.wait_procs, processes, timeout=within_seconds)
    assert not alive, alive


async def ended(process: psutil.Process, within_seconds: float) -> None:
    """Wait until it runs no more; its parent may be stopped, and then nobody takes note of its end."""
    for _ in range(round(within_seconds * 10)):
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return
        except psutil.NoSuchProcess:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{process} still runs")
