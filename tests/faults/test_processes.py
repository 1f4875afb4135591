"""Agents, controllers and front ends that die or stop, and clocks that jump."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from functools import partial

import psutil
import pytest

from runtime.cli.report import report
from tests.faults.conftest import told
from tests.faults.fleet import listening, ports_of
from tests.faults.harm import PLACES, SPLITS
from tests.faults.seen import answer
from tests.running import all_gone, controllers, ended, session

pytestmark = [pytest.mark.timeout(600), pytest.mark.matrix]

IDLE_SECONDS = 60.0
_DEMO = [sys.executable, "-m", "pomona", "demo", "--headless", "--max-tokens", "4000", "--prompt", "Tell a long story."]


@pytest.mark.parametrize("place", PLACES["pipeline"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=lambda how: how.name)
@pytest.mark.parametrize("keep_running", [True, False], ids=["keeps", "ends"])
async def test_an_agent(fleet, demo_model, note, keep_running, how, place):
    async with session(fleet.agents, demo_model, SPLITS["pipeline"], keep_running=keep_running) as running:
        undisturbed = (await answer(running)).tokens
        victim = running.ready.ranks[PLACES["pipeline"][place]]
        processes = fleet.workers()
        agent, worker = fleet.agent(victim.node_id), fleet.worker(victim.node_id)
        seen = await answer(running, lambda: agent.send_signal(how), request_id="harmed")
        outcome = "goes on" if keep_running else "ends"
        note(f"agent {how.name}", f"pipeline {place}", outcome, seen.noticed_seconds, told(seen))
        assert victim.node_name in seen.reasons[0]
        assert seen.tokens == undisturbed[: len(seen.tokens)]
        assert seen.finished or not keep_running
        assert seen.tokens == undisturbed or not keep_running
    await ended(worker, within_seconds=60)
    agent.kill()
    await all_gone(processes)
    fleet.replace(victim.node_id)


@pytest.mark.parametrize("mode", PLACES)
async def test_a_controller(fleet, demo_model, note, mode):
    async with session(fleet.agents, demo_model, SPLITS[mode], mode, keep_running=True) as running:
        processes = [*fleet.workers(), *controllers()]
        ports = ports_of(processes)
        (controller,) = controllers()
        seen = await answer(running, controller.kill)
        note("controller SIGKILL", mode, "ends", seen.noticed_seconds, seen.failed)
        assert "controller" in seen.failed
        await all_gone(processes)
        assert not ports & listening()


def test_a_front_end(note):
    with subprocess.Popen([*_DEMO, "--nodes", "2"], stdout=subprocess.PIPE) as front_end:
        assert front_end.stdout is not None
        assert front_end.stdout.read(1)
        processes = psutil.Process(front_end.pid).children(recursive=True)
        ports = ports_of(processes)
        front_end.kill()
        began = time.monotonic()
        _gone, alive = psutil.wait_procs(processes, timeout=30)
        note("front end SIGKILL", "pipeline", "ends", time.monotonic() - began, f"{len(processes)} processes end")
    assert not alive
    assert not ports & listening()


async def test_idle_costs_nothing(fleet, demo_model, note):
    async with session(fleet.agents, demo_model, SPLITS["pipeline"], keep_running=True) as running:
        await answer(running)
        agents = [fleet.agent(agent.node_id) for agent in fleet.agents.started]
        processes = [*agents, *fleet.workers(), *controllers()]
        await asyncio.sleep(2)
        before = [sum(process.cpu_times()[:2]) for process in processes]
        await asyncio.sleep(IDLE_SECONDS)
        used = [sum(process.cpu_times()[:2]) - then for process, then in zip(processes, before, strict=True)]
    shares = ", ".join(f"{seconds / IDLE_SECONDS:.1%}" for seconds in used)
    total = sum(used) / IDLE_SECONDS
    note("idle", "three stages", "loaded", None, f"{total:.1%} of a core: agents, workers, controller {shares}")


async def test_clocks_that_jump(fleet, demo_model, note):
    async with session(fleet.agents, demo_model, SPLITS["pipeline"], keep_running=True) as running:
        undisturbed = (await answer(running)).tokens
        for request_id, jump in (("forward", 86400.0 * 400), ("back", -86400.0 * 400)):
            harm = partial(fleet.wish, "clock", str(jump))
            seen = await answer(running, harm, request_id=request_id, breaks=False)
            assert seen.tokens == undisturbed
            assert not seen.reasons
        note("clock jump", "all", "goes on", None, "no one notices")
        text = await report(fleet.home, 4, only_here=True)
        assert "runtime.engine" in text
        assert not [name for name in fleet.names if name in text]
