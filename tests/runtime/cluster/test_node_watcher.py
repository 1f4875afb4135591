"""Trusted agents that answer are usable nodes; others can be paired at most, whatever mDNS says."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest
from aiohttp import web

from discovery import tls
from discovery.address import AddressBook, HostPort
from discovery.announcement import Sighting
from discovery.beacon import Beacon
from discovery.browser import Browser
from discovery.home import temporary_home
from resources.node import NodeResources, Versions
from runtime.agent.calls import MAX_ANSWER_BYTES, NoAnswer, Refused, new_session
from runtime.cluster.asking import MEMORY_STEP_BYTES, ask_node
from runtime.cluster.nodes import KnownNode, NodeWatcher, PollTimes, UnpairedNode
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from discovery.browser import Change
    from discovery.home import Home

GIB = 2**30
PATIENT = PollTimes(interval=0.02, limit=2, silence=20, stranger=0.05, look=0.02)
HASTY = PollTimes(interval=0.02, limit=0.3, silence=0.5, stranger=0.05, look=0.02)


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


class Nodes:
    """Every report of a watcher, in order."""

    def __init__(self) -> None:
        self.reports: list[tuple[KnownNode, ...]] = []
        self.unpaired: tuple[UnpairedNode, ...] = ()
        self._news = asyncio.Event()

    def __call__(self, nodes: tuple[KnownNode, ...]) -> None:
        self.reports.append(nodes)
        self._news.set()

    def on_unpaired(self, nodes: tuple[UnpairedNode, ...]) -> None:
        self.unpaired = nodes
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
        self.home = stack.enter_context(temporary_home())
        self.watcher = NodeWatcher(self.home, self.nodes, self.nodes.on_unpaired, times, self._browser)

    def _browser(self, on_change: Callable[[Change, Sighting], None]) -> Browser:
        self.browsers.append(ByHand(on_change))
        return self.browsers[-1]

    def tell(self, change: Change, sighting: Sighting) -> None:
        self.browsers[0].tell(change, sighting)

    async def agent(self, name: str = "Studio", *, paired: bool = True) -> Agent:
        agent = Agent(name, self.stack.enter_context(temporary_home()), self.home)
        if paired:
            self.home.trust.pair(agent.home.identity.certificate_pem, name)
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
    async with AsyncExitStack() as stack:
        home = stack.enter_context(temporary_home())
        watcher = NodeWatcher(home, nodes)
        stack.push_async_callback(watcher.close)
        await watcher.start()
        agents, beacons = [], []
        for name in ("mini", "Studio", "MacBook"):
            agent = Agent(name, stack.enter_context(temporary_home()), home)
            home.trust.pair(agent.home.identity.certificate_pem, name)
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
        await agents[1].close()
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


async def test_an_agent_that_is_not_paired_can_be_paired_and_is_usable_when_it_is(bench):
    agent = await bench.agent(paired=False)
    bench.tell("added", agent.sighting())
    await bench.nodes.until(lambda: bench.nodes.unpaired == (agent.unpaired(),))
    assert not bench.nodes.reports
    assert agent.asked == 0  # a stranger is asked for nothing but hello
    bench.home.trust.pair(agent.home.identity.certificate_pem, "Studio")
    await bench.nodes.until(lambda: bench.nodes.names == ["Studio"] and not bench.nodes.unpaired)


async def test_an_agent_that_removed_us_can_only_be_paired_again(bench):
    agent = await bench.agent()
    await bench.shown(agent)
    agent.trusts = False
    await bench.nodes.until(lambda: not bench.nodes.names and bench.nodes.unpaired == (agent.unpaired(),))


async def test_an_agent_that_we_removed_is_usable_no_more(bench):
    agent = await bench.agent()
    await bench.shown(agent)
    bench.home.trust.remove(agent.resources.node_id)
    await bench.nodes.until(lambda: not bench.nodes.names and bench.nodes.unpaired == (agent.unpaired(),))


async def test_whoever_announces_the_id_of_a_trusted_node_is_told_nothing(bench):
    """Its certificate is another one, so it sees neither ours nor a request."""
    agent, impostor = await bench.agent(), await bench.agent("Impostor", paired=False)
    bench.tell("added", replace(agent.sighting(), port=impostor.port))
    honest = await bench.agent("mini")
    await bench.shown(honest)
    await honest.until_asked(5)
    assert impostor.asked == 0
    assert bench.nodes.names == ["mini"]


async def test_a_typed_address_is_found_and_tried_again(bench):
    agent = await bench.agent()
    book = AddressBook(bench.home.folder)
    book.add(HostPort("127.0.0.1", agent.port))
    await bench.nodes.until(lambda: bench.nodes.names == ["Studio"])
    book.remove(HostPort("127.0.0.1", agent.port))
    await agent.close()


async def test_an_address_where_nobody_answers_is_tried_until_somebody_does(bench):
    agent = await bench.agent()
    await agent.close()
    AddressBook(bench.home.folder).add(HostPort("127.0.0.1", agent.port))
    honest = await bench.agent("mini")
    await bench.shown(honest)  # some rounds have passed
    await honest.until_asked(10)
    await agent.start(agent.port)
    await bench.nodes.until(lambda: bench.nodes.names == ["Studio", "mini"])


async def test_a_node_is_found_again_where_it_was_reached_before(bench):
    agent = await bench.agent()
    bench.home.trust.remember_address(agent.resources.node_id, HostPort("127.0.0.1", agent.port))
    await bench.nodes.until(lambda: bench.nodes.names == ["Studio"])


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
    second = Agent("Studio", first.home, bench.home)
    bench.stack.push_async_callback(second.close)
    await second.start()
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
    with temporary_home() as home:
        watcher = NodeWatcher(home, Nodes(), None, PATIENT, Broken)
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
        context = self.agent.peer.context_for(self.agent.home.identity.certificate_pem)
        async with new_session(self.timeout) as session:
            return await ask_node(session, HostPort("127.0.0.1", self.agent.port), self._node_id, context)


@pytest.fixture
async def ask():
    async with AsyncExitStack() as stack:
        agent = Agent("Studio", stack.enter_context(temporary_home()), stack.enter_context(temporary_home()))
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


async def test_an_agent_that_does_not_trust_us_refuses(ask):
    ask.agent.trusts = False
    with pytest.raises(Refused):
        await ask()


async def test_another_certificate_than_the_pinned_one_is_no_answer(ask):
    with temporary_home() as other:
        ask.agent.home = other
        with pytest.raises(NoAnswer, match="CERTIFICATE_VERIFY_FAILED"):
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


@pytest.mark.parametrize("status", [301, 500])
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


async def ask_there(answer, home: Home, *, with_tls: bool = True) -> NodeResources:
    """Ask what serves connections with ``answer``, as if it were the node of ``home``."""
    own = home.identity
    context = tls.server_context(own.certificate_path, own.key_path, []) if with_tls else None
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server, new_session(5) as session:
        place = HostPort("127.0.0.1", server.sockets[0].getsockname()[1])
        return await ask_node(session, place, own.node_id, tls.anonymous_context(own.certificate_pem))


@pytest.fixture
def home():
    with temporary_home() as home:
        yield home


@pytest.mark.parametrize("with_tls", [True, False], ids=["over TLS", "plain"])
@pytest.mark.parametrize("garbage", [b"", b"\x16\x03\x01\x02\x00", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 " + b"x" * 20_000])
async def test_what_does_not_speak_http_is_no_answer(home, garbage, with_tls):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(garbage)
        writer.close()

    with pytest.raises((NoAnswer, Refused)):  # one that hangs up may have refused our certificate
        await ask_there(answer, home, with_tls=with_tls)


async def test_an_answer_that_never_ends_is_no_answer(home):
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
                await writer.drain()
        except ConnectionError:
            writer.close()

    with pytest.raises(NoAnswer, match="more than"):
        await ask_there(endless, home)
