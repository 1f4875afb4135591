"""What live updates cost: ``python -m tests.bench.live_updates [--seconds 30]``; less than 1% of a core is wanted.

A real agent, first unasked, then asked once a second as a window does; and what a Mac's monitor takes to start its
commands, with programs in their place that print what was recorded: what the real ones take themselves is not in it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from discovery.home import temporary_home
from resources.monitor import Monitor
from resources.survey import METAL
from runtime.cli.virtual_nodes import VirtualNode, VirtualNodes
from runtime.cluster.node_watcher import NodeWatcher
from tests.resources.test_monitor import ANSWERS, install

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from runtime.cluster.nodes import KnownNode

WANTED_PERCENT = 1.0
_SETTLE_SECONDS = 3.0


async def percent_of_a_core(seconds: float, cpu_seconds: Callable[[], float]) -> float:
    """How busy something is that counts its own seconds."""
    before = cpu_seconds()
    await asyncio.sleep(seconds)
    return 100 * (cpu_seconds() - before) / seconds


def of_process(pid: int) -> Callable[[], float]:
    """User and system time of a process and of its children that have ended."""
    process = psutil.Process(pid)
    return lambda: sum(process.cpu_times()[:4])


def of_this_process() -> float:
    """The same of this one, exactly."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def report(what: str, percent: float, wanted: float | None = WANTED_PERCENT) -> None:
    """One line."""
    verdict = "" if wanted is None else f"  wanted below {wanted:.0f}%: {'yes' if percent < wanted else 'NO'}"
    print(f"{what:<58} {percent:6.2f}% of a core{verdict}", flush=True)


async def agent(seconds: float) -> None:
    """Before it is asked, and while it is."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        temporary_home() as home,
        VirtualNodes([VirtualNode("Apricot", 1 << 30)], home, Path(scratch) / "log") as nodes,
    ):
        (started,) = nodes.started()
        of_agent = of_process(started.pid)
        await asyncio.sleep(_SETTLE_SECONDS)
        idle = await percent_of_a_core(seconds, of_agent)
        report("an agent that nobody asks", idle, None)
        seen = asyncio.Event()

        def keep(known: tuple[KnownNode, ...]) -> None:
            if known:
                seen.set()

        watcher = NodeWatcher(home, keep)
        await watcher.start()
        async with asyncio.timeout(30):
            await seen.wait()
        await asyncio.sleep(_SETTLE_SECONDS)
        own_before = of_this_process()
        asked = await percent_of_a_core(seconds, of_agent)
        own = 100 * (of_this_process() - own_before) / seconds
        await watcher.close()
        report("the same, asked once a second", asked, None)
        report("live updates, on the node", max(asked - idle, 0.0))
        report("live updates, where they are shown (browsing included)", own, None)


async def monitor(seconds: float) -> None:
    """The Mac's commands, started at the Mac's times."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        install(folder, {command: sample for command, sample in ANSWERS.items() if command is not METAL})
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        watched = Monitor()
        watched.start()
        watched.latest()
        await asyncio.sleep(_SETTLE_SECONDS)

        async def ask_each_second(ask: Callable[[], Awaitable[float]]) -> float:
            measuring = asyncio.ensure_future(ask())
            while not measuring.done():
                watched.latest()
                await asyncio.wait({measuring}, timeout=1)
            return measuring.result()

        percent = await ask_each_second(lambda: percent_of_a_core(seconds, of_this_process))
        await watched.close()
        report("a Mac's monitor, starting programs that only print", percent)


async def run() -> None:
    """All three."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.live_updates")
    parser.add_argument("--seconds", type=float, default=30, help="for each figure (30)")
    options = parser.parse_args()
    await agent(options.seconds)
    await monitor(options.seconds)


if __name__ == "__main__":
    asyncio.run(run())
