"""Agents that answer with our key are usable nodes; all others are not, whatever mDNS says."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import aiohttp
import msgspec
import psutil
import pytest
from aiohttp import web

from discovery.announcement import Sighting
from discovery.beacon import Beacon
from discovery.browser import Browser
from resources.node import NodeResources, Versions
from runtime.cluster.nodes import (
    MAX_ANSWER_BYTES,
    MEMORY_STEP_BYTES,
    KnownNode,
    NoAnswer,
    NodeWatcher,
    NotOurs,
    PollTimes,
    ask_node,
)
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from discovery.browser import Change

KEY = "the key of this test"
GIB = 2**30
PATIENT = PollTimes(interval=0.02, limit=0.5, silence=20, stranger=0.05)
HASTY = PollTimes(interval=0.02, limit=0.3, silence=0.5, stranger=0.05)


def resources_of(name: str, node_id: str | None = None, available: int = 4 * GIB) -> NodeResources:
    versions = Versions("0.1.0", "0.32.4", "0.32.2", "3.11.7", "macOS 26.1")
    return NodeResources(node_id or secrets.token_hex(32), name, "Apple M4", 16 * GIB, available, False, versions)


class Agent:
    """A server that answers as an agent does, until a test changes ``body``, ``status``, ``key`` or ``awake``."""

    def __init__(self, name: str) -> None:
        self.resources = resources_of(name)
        self.boot_id = secrets.token_hex(8)
        self.key = KEY
        self.status = 200
        self.body: bytes | None = None
        self.headers: dict[str, str] = {}
        self.awake = asyncio.Event()
        self.awake.set()
        self.asked = 0
        self.port = 0
        self._news = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/v1/node", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        self._news.set()
        await self.awake.wait()
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            return web.Response(status=401)
        body = msgspec.json.encode(self.resources) if self.body is None else self.body
        return web.Response(body=body, status=self.status, headers=self.headers)

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
        return KnownNode(host, self.port, self.resources)


class Nodes:
    """Every report of a watcher, in order."""

    def __init__(self) -> None:
        self.reports: list[tuple[KnownNode, ...]] = []
        self._news = asyncio.Event()

    def __call__(self, nodes: tuple[KnownNode, ...]) -> None:
        self.reports.append(nodes)
        self._news.set()

    @property
    def names(self) -> list[str]:
        return [node.resources.name for node in self.reports[-1]] if self.reports else []

    async def until(self, enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not enough():
                self._news.clear()
                await self._news.wait()


class ByHand(Browser):
    """A browser that sees what a test tells it to see."""

    def __init__(self, on_change: Callable[[Change, Sighting], None]) -> None:
        super().__init__(on_change)
        self.tell = on_change

    async def start(self) -> None:
        """Look at nothing."""


class Bench:
    """A watcher, what it reported, and agents that it may be shown."""

    def __init__(self, stack: AsyncExitStack, times: PollTimes = PATIENT) -> None:
        self.stack = stack
        self.nodes = Nodes()
        self.browsers: list[ByHand] = []
        self.watcher = NodeWatcher(KEY, self.nodes, times, self._browser)

    def _browser(self, on_change: Callable[[Change, Sighting], None]) -> Browser:
        self.browsers.append(ByHand(on_change))
        return self.browsers[-1]

    def tell(self, change: Change, sighting: Sighting) -> None:
        self.browsers[0].tell(change, sighting)

    async def agent(self, name: str = "Studio") -> Agent:
        agent = Agent(name)
        self.stack.push_async_callback(agent.close)
        await agent.start()
        return agent

    async def shown(self, agent: Agent) -> None:
        """Announce an agent and wait until it is usable."""
        self.tell("added", agent.sighting())
        await self.nodes.until(lambda: agent.resources.name in self.nodes.names)


@pytest.fixture
async def bench(request):
    async with AsyncExitStack() as stack:
        bench = Bench(stack, getattr(request, "param", PATIENT))
        stack.push_async_callback(bench.watcher.close)
        await bench.watcher.start()
        yield bench


async def test_agents_on_mdns_become_nodes_sorted_by_name_and_leave_with_their_goodbye():
    nodes = Nodes()
    watcher = NodeWatcher(KEY, nodes)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(watcher.close)
        await watcher.start()
        agents, beacons = [], []
        for name in ("mini", "Studio", "MacBook"):
            agent = Agent(name)
            stack.push_async_callback(agent.close)
            await agent.start()
            beacon = Beacon(agent.resources.node_id, name, agent.port)
            stack.push_async_callback(beacon.close)
            agents.append(agent)
            beacons.append(beacon)
        await asyncio.gather(*(beacon.start() for beacon in beacons))
        await nodes.until(lambda: len(nodes.names) == 3)
        assert nodes.reports[-1] == (agents[2].known(), agents[1].known(), agents[0].known())
        await beacons[1].close()
        await nodes.until(lambda: nodes.names == ["MacBook", "mini"])


async def test_nothing_changed_is_no_report(bench):
    agent = await bench.agent()
    await bench.shown(agent)
    await agent.until_asked(5)
    assert bench.nodes.reports == [(agent.known(),)]


async def test_memory_is_reported_in_steps(bench):
    agent = await bench.agent()
    await bench.shown(agent)
    agent.resources = msgspec.structs.replace(agent.resources, memory_available_bytes=4 * GIB + MEMORY_STEP_BYTES - 1)
    await agent.until_asked(3)
    agent.resources = msgspec.structs.replace(agent.resources, memory_available_bytes=3 * GIB)
    await bench.nodes.until(lambda: len(bench.nodes.reports) == 2)
    assert [nodes[0].resources.memory_available_bytes for nodes in bench.nodes.reports] == [4 * GIB, 3 * GIB]


async def test_an_agent_with_another_key_is_not_reported_until_it_has_ours(bench):
    agent = await bench.agent()
    agent.key = "another"
    bench.tell("added", agent.sighting())
    await agent.until_asked(2)
    assert not bench.nodes.reports
    agent.key = KEY
    await bench.nodes.until(lambda: bench.nodes.names == ["Studio"])


async def test_an_agent_that_changes_its_key_is_gone_at_once(bench):
    agent = await bench.agent()
    await bench.shown(agent)
    agent.key = "another"
    await bench.nodes.until(lambda: not bench.nodes.names)


@pytest.mark.parametrize("bench", [HASTY], indirect=True)
async def test_an_agent_that_is_gone_drops_out_though_mdns_says_nothing(bench):
    agent, other = await bench.agent("gone"), await bench.agent("stays")
    await bench.shown(agent)
    await bench.shown(other)
    await agent.close()
    await bench.nodes.until(lambda: bench.nodes.names == ["stays"])


@pytest.mark.parametrize("bench", [HASTY], indirect=True)
async def test_an_agent_that_hangs_drops_out_and_returns_when_it_wakes(bench):
    agent = await bench.agent()
    await bench.shown(agent)
    agent.awake.clear()
    await bench.nodes.until(lambda: not bench.nodes.names)
    agent.awake.set()
    await bench.nodes.until(lambda: bench.nodes.names == ["Studio"])


async def test_a_slow_answer_within_the_silence_is_no_news(bench):
    agent = await bench.agent()
    await bench.shown(agent)
    agent.awake.clear()
    await agent.until_asked()
    agent.awake.set()
    await agent.until_asked(2)
    assert len(bench.nodes.reports) == 1


async def test_an_agent_started_again_on_another_port_is_never_reported_on_the_old_one(bench):
    first = await bench.agent()
    await bench.shown(first)
    second = await bench.agent()
    second.resources = first.resources
    bench.tell("updated", second.sighting())
    await bench.nodes.until(lambda: bench.nodes.reports[-1] == (second.known(),))
    asked = first.asked
    await second.until_asked(3)
    assert first.asked == asked


async def test_each_address_is_tried(bench):
    agent = await bench.agent()
    bench.tell("added", agent.sighting(("127.0.0.2", "::1", "127.0.0.1")))
    await bench.nodes.until(lambda: bench.nodes.names == ["Studio"])
    assert bench.nodes.reports == [(agent.known("127.0.0.1"),)]


async def test_the_key_is_sent_to_loopback_addresses_only(bench, monkeypatch):
    asked = []
    enough = asyncio.Event()

    async def ask(_session, host, _port, _node_id):
        asked.append(host)
        if len(asked) == 6:
            enough.set()
        raise NoAnswer

    monkeypatch.setattr("runtime.cluster.nodes.ask_node", ask)
    agent, remote = await bench.agent(), await bench.agent()
    bench.tell("added", remote.sighting(("192.0.2.7", "fe80::1%lo", "0.0.0.0", "::", "::ffff:192.0.2.7")))
    bench.tell("added", agent.sighting(("192.0.2.7", "127.0.0.1", "::1")))
    await asyncio.wait_for(enough.wait(), 10)
    assert set(asked) == {"127.0.0.1", "::1"}


async def test_after_close_there_is_no_report_no_task_and_no_socket():
    process = psutil.Process()
    tasks, descriptors = asyncio.all_tasks(), process.num_fds()
    async with AsyncExitStack() as stack:
        bench = Bench(stack)
        agents = [await bench.agent(f"Mac {index}") for index in range(3)]
        await bench.watcher.start()
        for agent in agents:
            await bench.shown(agent)
        agents[0].awake.clear()
        await agents[0].until_asked()
        reports = list(bench.nodes.reports)
        await bench.watcher.close()
        await bench.watcher.close()
        bench.tell("added", agents[1].sighting())
        agents[0].awake.set()
    for _ in range(3):
        await asyncio.sleep(0)  # what closed in this turn of the loop is gone in the next
    assert asyncio.all_tasks() == tasks
    assert process.num_fds() == descriptors
    assert bench.nodes.reports == reports


async def test_without_mdns_the_person_is_told():
    class Broken(ByHand):
        async def start(self):
            raise OSError(98, "Address already in use")

    tasks = asyncio.all_tasks()
    watcher = NodeWatcher(KEY, Nodes(), PATIENT, Broken)
    with pytest.raises(PomonaError, match=r"port 5353 .*Address already in use"):
        await watcher.start()
    assert asyncio.all_tasks() == tasks


# One question --------------------------------------------------------------------------------------------------------


class Question:
    """Asks one agent, whatever it answers."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.timeout = 10.0
        self._node_id = agent.resources.node_id

    async def __call__(self) -> NodeResources:
        headers, limit = {"Authorization": f"Bearer {KEY}"}, aiohttp.ClientTimeout(total=self.timeout)
        async with aiohttp.ClientSession(headers=headers, timeout=limit) as session:
            return await ask_node(session, "127.0.0.1", self.agent.port, self._node_id)


@pytest.fixture
async def ask():
    async with AsyncExitStack() as stack:
        agent = Agent("Studio")
        stack.push_async_callback(agent.close)
        await agent.start()
        yield Question(agent)


async def test_the_answer_is_what_the_agent_has(ask):
    assert await ask() == ask.agent.resources


async def test_a_budget_that_is_wholly_free_stays_what_it_is(ask):
    ask.agent.resources = msgspec.structs.replace(
        ask.agent.resources, memory_total_bytes=400_000_000, memory_available_bytes=400_000_000, virtual=True
    )
    assert (await ask()).memory_available_bytes == 400_000_000


async def test_another_key_is_not_ours(ask):
    ask.agent.key = "another"
    with pytest.raises(NotOurs):
        await ask()


async def test_another_node_at_the_same_place_is_no_answer(ask):
    ask.agent.resources = resources_of("Impostor")
    with pytest.raises(NoAnswer, match="another node"):
        await ask()


async def test_texts_are_made_fit_for_labels(ask):
    odd = resources_of("a\u202eb\n" + "x" * 500, ask.agent.resources.node_id)
    ask.agent.resources = msgspec.structs.replace(odd, chip="\x07", versions=Versions("", "1", "2", "3", "4"))
    answer = await ask()
    assert answer.name.startswith("a b x")
    assert len(answer.name) == 80
    assert answer.chip == "unknown chip"
    assert answer.versions.pomona == "unknown"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xff",
        b"[" * 50_000,
        b'{"node_id": 3}',
        b" " * (MAX_ANSWER_BYTES + 1),
        b"x" * 4_000_000,
    ],
)
async def test_a_body_that_no_agent_would_send_is_no_answer(ask, body):
    ask.agent.body = body
    with pytest.raises(NoAnswer):
        await ask()


@pytest.mark.parametrize(
    "memory",
    [
        {"memory_total_bytes": -1, "memory_available_bytes": -1},
        {"memory_available_bytes": 17 * GIB},
        {"memory_available_bytes": -1},
        {"memory_total_bytes": 2**60},
        {"memory_total_bytes": 0, "memory_available_bytes": 0},
    ],
)
async def test_memory_that_no_machine_has_is_no_answer(ask, memory):
    ask.agent.resources = msgspec.structs.replace(ask.agent.resources, **memory)
    with pytest.raises(NoAnswer, match="memory"):
        await ask()


@pytest.mark.parametrize("status", [204, 301, 403, 404, 500])
async def test_any_other_status_is_no_answer(ask, status):
    ask.agent.status = status
    ask.agent.headers = {"Location": "http://192.0.2.7/v1/node"}
    with pytest.raises(NoAnswer, match=str(status)):
        await ask()
    assert ask.agent.asked == 1


async def test_silence_is_no_answer(ask):
    ask.agent.awake.clear()
    ask.timeout = 0.1
    with pytest.raises(NoAnswer, match="Timeout"):
        await ask()
    ask.agent.awake.set()


@pytest.mark.parametrize("garbage", [b"", b"\x16\x03\x01\x02\x00", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 " + b"x" * 20_000])
async def test_what_does_not_speak_http_is_no_answer(garbage):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(garbage)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, aiohttp.ClientSession() as session:
        with pytest.raises(NoAnswer):
            await ask_node(session, "127.0.0.1", server.sockets[0].getsockname()[1], "f" * 64)


async def test_an_answer_that_never_ends_is_no_answer(ask):
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
                await writer.drain()
        except ConnectionError:
            writer.close()

    async with await asyncio.start_server(endless, "127.0.0.1", 0) as server, aiohttp.ClientSession() as session:
        with pytest.raises(NoAnswer, match="more than"):
            await ask_node(session, "127.0.0.1", server.sockets[0].getsockname()[1], "f" * 64)
