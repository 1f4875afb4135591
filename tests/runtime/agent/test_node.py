"""What an agent tells of its node, over its own server: settings that it keeps, and what its workers hold."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import asynccontextmanager

import pytest

from discovery.address import HostPort
from discovery.home import temporary_home
from resources.calibration import StoredCalibrations
from resources.cpu_load import CpuLoad
from resources.node import Calibration, Versions
from resources.probe import Machine
from runtime.agent import calibration
from runtime.agent.calls import new_session
from runtime.agent.node import AgentNode
from runtime.agent.server import AgentServer, ServerOptions
from runtime.cli.memory_cap import choose_cap
from runtime.cluster.asking import ask_node
from runtime.cluster.node_settings import set_memory_cap
from runtime.cluster.nodes import KnownNode
from runtime.errors import PomonaError

GIB = 1 << 30
LOOPBACK = "127.0.0.1"
MACHINE = Machine("Apple M99", 4 * GIB, Versions("1", "2", "3", "4", "macOS 30.0"))
FOUND = Calibration({"4-bit": 300 * 10**9, "bf16": 400 * 10**9}, 1e12, 1e-5)


@asynccontextmanager
async def served(home):
    """A node's agent as far as its resources go; anew each time, as after a restart."""
    name, node_id = "Studio", home.identity.node_id
    node = AgentNode(MACHINE, node_id, name, home.folder, home.folder, budget_bytes=2 * GIB)
    server = AgentServer(home, ServerOptions(), node.resources, home.folder / "logs", node.routes)
    port = await server.start()
    try:
        async with node.watched():
            yield KnownNode(LOOPBACK, port, node.resources(), home.identity.certificate_pem)
    finally:
        await server.close()


async def ask(home, known):
    async with new_session(10) as session:
        context = home.context_for(known.certificate)
        return await ask_node(session, HostPort(known.host, known.port), home.identity.node_id, context)


async def test_a_cap_bounds_what_a_model_may_take_and_outlives_the_agent():
    with temporary_home() as home:
        async with served(home) as known:
            before = await ask(home, known)
            assert (before.memory_cap_bytes, before.memory_cap_is_chosen) == (2 * GIB, False)
            await choose_cap(home, [known], "studio", "25%")
        async with served(home) as known:
            has = await ask(home, known)
            assert (has.memory_cap_bytes, has.memory_cap_is_chosen) == (GIB // 2, True)
            assert has.memory_available_bytes <= GIB // 2
            await choose_cap(home, [known], has.node_id, "usual")
            assert (await ask(home, known)).memory_cap_is_chosen is False


async def test_a_node_that_is_gone_takes_no_cap():
    with temporary_home() as home:
        async with served(home) as known:
            pass
        with pytest.raises(PomonaError, match="Studio does not answer"):
            await set_memory_cap(home, known, GIB)


async def test_what_is_sent_is_decoded_before_it_counts():
    with temporary_home() as home:
        async with served(home) as known:
            with pytest.raises(PomonaError, match="does not understand"):
                await set_memory_cap(home, known, -1)
            assert (await ask(home, known)).memory_cap_is_chosen is False


async def test_the_parts_of_memory_come_over_the_wire_and_add_up():
    with temporary_home() as home:
        async with served(home) as known:
            has = await ask(home, known)
    assert has.memory is not None
    assert has.memory.others_bytes + has.memory.ours_bytes + has.memory.free_bytes == has.memory_total_bytes == 2 * GIB


def test_a_virtual_node_s_bandwidth_is_what_it_was_given_whatever_was_measured(tmp_path):
    StoredCalibrations(tmp_path).keep(MACHINE.versions.mlx, FOUND)
    node = AgentNode(MACHINE, "f" * 64, "Slow", tmp_path, tmp_path, budget_bytes=GIB, bandwidth=50 * 10**9)
    has = node.resources()
    assert (has.memory_bandwidth_bytes_per_second, has.memory_bandwidth_source) == (50 * 10**9, "given")
    assert has.calibration is None


async def test_a_mac_whose_chip_is_in_no_table_is_measured_once(tmp_path, monkeypatch):
    measured = []

    def measure():
        measured.append(True)
        return calibration.Measured(FOUND, 0.0)

    monkeypatch.setattr(calibration, "measure", measure)
    monkeypatch.setattr(CpuLoad, "latest", lambda _load: 0.0)  # whatever else these tests do
    monkeypatch.setattr(calibration, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC_RAW, raising=False)  # macOS's own
    monkeypatch.setenv("PATH", str(tmp_path))  # none of a Mac's commands is there: every field stays unknown
    for _ in range(2):
        node = AgentNode(MACHINE, "f" * 64, "Studio", tmp_path / "node", tmp_path)
        async with node.watched(), asyncio.timeout(30):
            while node.resources().memory_bandwidth_source != "measured":  # noqa: ASYNC110  a thread measures
                await asyncio.sleep(0.01)
        assert node.resources().memory_bandwidth_bytes_per_second == 400 * 10**9
    assert measured == [True]
