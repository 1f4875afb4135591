"""Trusted agents that answer are usable nodes; others can be paired at most, whatever mDNS says."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest

from discovery.address import AddressBook, HostPort
from discovery.beacon import Beacon
from discovery.browser import Browser
from discovery.home import temporary_home
from runtime.cluster.asking import MEMORY_STEP_BYTES
from runtime.cluster.node_watcher import NodeWatcher, PollTimes
from runtime.errors import PomonaError
from tests.runtime.cluster.agent import GIB, Agent

if TYPE_CHECKING:
    from collections.abc import Callable

    from discovery.announcement import Sighting
    from discovery.browser import Change
    from runtime.cluster.nodes import KnownNode, UnpairedNode

PATIENT = PollTimes(interval=0.02, limit=2, silence=20, stranger=0.05, look=0.02)
HASTY = PollTimes(interval=0.02, limit=0.3, silence=0.5, stranger=0.05, look=0.02)


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
