"""What keeps a model from being loaded: named before or while it is, and the next start works."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Self

import psutil
import pytest

from runtime.cluster.client import SessionClient
from runtime.cluster.messages import Ending, Failed, LoadProgress, Ready
from runtime.errors import PomonaError
from tests.faults.fleet import copy_of, environment
from tests.faults.harm import PLACES, SPLITS
from tests.running import LOAD_SECONDS, Running, find, plan_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path

    from runtime.planning.plan import Mode
    from tests.faults.fleet import Fleet

pytestmark = [pytest.mark.timeout(600), pytest.mark.matrix]

WEIGHTS_NAME = "model.safetensors"


@asynccontextmanager
async def start(
    fleet: Fleet, folder: Path, mode: Mode = "pipeline", folder_on: Sequence[str] | None = None
) -> AsyncIterator[Running]:
    """A session that has only begun to load."""
    nodes = await find(fleet.agents)
    plan = plan_for(folder, nodes, SPLITS[mode], mode)
    client = await SessionClient.start(plan, folder, nodes, fleet.home.folder, keep_running=True, folder_on=folder_on)
    try:
        yield Running(client, client.events())
    finally:
        await client.close()


async def end_of_start(running: Running, since: Callable[[LoadProgress], bool]) -> tuple[Ready | Failed, float]:
    """How it came out, and how long after the first progress that counts."""
    began = noticed = time.monotonic()
    waiting = True
    async with asyncio.timeout(2 * LOAD_SECONDS):
        while True:
            event = await running.next_of(LoadProgress, Ready, Ending, Failed)
            if isinstance(event, LoadProgress):
                if waiting and since(event):
                    began, waiting = time.monotonic(), False
            elif isinstance(event, Ending):
                noticed = time.monotonic()
            elif isinstance(event, Failed):
                return event, noticed - began
            elif isinstance(event, Ready):
                return event, time.monotonic() - began


def _is_rank(index: int, event: LoadProgress, phase: str = "loading") -> bool:
    return event.rank == index and event.phase == phase


async def starts_now(fleet: Fleet, folder: Path, mode: Mode = "pipeline") -> None:
    fleet.forget_wishes()
    async with start(fleet, folder, mode) as running:
        outcome, _ = await end_of_start(running, lambda _: True)
        assert isinstance(outcome, Ready), outcome


@pytest.mark.parametrize("mode", PLACES)
async def test_an_exception_while_loading(fleet, demo_model, note, mode):
    for place, index in PLACES[mode].items():
        fleet.forget_wishes()
        fleet.wish(f"rank-{index}", "load")
        async with start(fleet, demo_model, mode) as running:
            failed, seconds = await end_of_start(running, partial(_is_rank, index))
            assert isinstance(failed, Failed)
            note("exception in load", f"{mode} {place}", "ends", seconds, failed.reason)
            assert failed.reason.startswith(fleet.names[index])
            assert "forced in load" in failed.reason
    await starts_now(fleet, demo_model, mode)


@pytest.mark.parametrize("mode", PLACES)
async def test_a_load_that_hangs(fleet, demo_model, note, mode):
    for place, index in PLACES[mode].items():
        fleet.forget_wishes()
        fleet.wish(f"rank-{index}", "hang in load")
        async with start(fleet, demo_model, mode) as running:
            failed, seconds = await end_of_start(running, partial(_is_rank, index))
            assert isinstance(failed, Failed)
            note("hang in load", f"{mode} {place}", "ends", seconds, failed.reason)
            assert fleet.names[index] in failed.reason
            assert "neither computed nor read" in failed.reason
    await starts_now(fleet, demo_model, mode)


async def test_a_worker_that_hangs_before_it_says_anything(fleet, demo_model, note):
    for place, index in PLACES["pipeline"].items():
        fleet.forget_wishes()
        fleet.wish(f"rank-{index}", "hang at start")
        async with start(fleet, demo_model) as running:
            failed, seconds = await end_of_start(running, partial(_is_rank, index, phase="starting"))
            assert isinstance(failed, Failed)
            note("hang at start", f"pipeline {place}", "ends", seconds, failed.reason)
            assert fleet.names[index] in failed.reason
            assert "neither computed nor read" in failed.reason
    await starts_now(fleet, demo_model)


async def test_weights_that_are_cut_short_before_the_start(fleet, demo_model, tmp_path, note):
    folder = copy_of(demo_model, tmp_path)
    os.truncate(folder / WEIGHTS_NAME, 50 << 20)
    nodes = await find(fleet.agents)
    with pytest.raises(PomonaError) as refused:
        plan_for(folder, nodes, SPLITS["pipeline"])
    note("weights cut short", "before the start", "refused", None, str(refused.value))
    assert WEIGHTS_NAME in str(refused.value)


async def test_weights_that_are_cut_short_while_they_are_loaded(fleet, demo_model, tmp_path, note):
    folder = copy_of(demo_model, tmp_path)

    def cut(event: LoadProgress) -> bool:
        if not _is_rank(1, event):
            return False
        os.truncate(folder / WEIGHTS_NAME, 1 << 20)
        fleet.forget_wishes()
        return True

    fleet.wish("rank-1", "hang in load")  # until the file is cut: it might be read before
    async with start(fleet, folder) as running:
        failed, seconds = await end_of_start(running, cut)
    assert isinstance(failed, Failed)
    note("weights cut short", "while loading", "ends", seconds, failed.reason)
    assert any(name in failed.reason for name in fleet.names)
    assert "cut short" in failed.reason or "incomplete" in failed.reason
    await starts_now(fleet, demo_model)


@pytest.fixture
def small_disk(tmp_path, needs_root) -> Iterator[Path]:
    """A folder on a disk with room for a few layers."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_a_disk_that_gets_full(fleet, demo_model, small_disk, note):
    first, last = fleet.agents.started[0].node_id, fleet.agents.started[-1].node_id
    fleet.agent(last).kill()
    with environment(TMPDIR=str(small_disk)):
        fleet.replace(last)
    async with start(fleet, demo_model, folder_on=[first]) as running:
        failed, _ = await end_of_start(running, lambda _: True)
    assert isinstance(failed, Failed)
    note("disk full", "last", "ends", None, failed.reason)
    assert fleet.names[-1] in failed.reason
    assert "disk" in failed.reason
    last = fleet.agents.started[-1].node_id
    fleet.agent(last).kill()
    fleet.replace(last)
    await starts_now(fleet, demo_model)


def test_an_agents_port_that_is_taken(note):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "pomona", "agent", "--listen", "loopback", "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    words = done.stderr.splitlines()[-1]
    note("port taken", "agent", "refused", None, words)
    assert f"Port {port} is taken" in words
    assert "Traceback" not in done.stderr


class Stranger(threading.Thread):
    """Connects to every port on which a worker listens as soon as it does, sends garbage, and holds on."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(daemon=True)
        self._fleet = fleet
        self._over = threading.Event()
        self.connections: dict[int, socket.socket] = {}

    def run(self) -> None:
        while not self._over.is_set():
            for worker in self._fleet.workers():
                with contextlib.suppress(psutil.Error, OSError):
                    for one in worker.net_connections("tcp4"):
                        if one.status == psutil.CONN_LISTEN and one.laddr.port not in self.connections:
                            caller = socket.create_connection((one.laddr.ip, one.laddr.port), timeout=1)
                            self.connections[one.laddr.port] = caller
                            caller.sendall(os.urandom(64))
            self._over.wait(0.01)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        for connection in self.connections.values():
            connection.close()


@pytest.mark.parametrize("mode", PLACES)
async def test_a_stranger_who_connects_first(fleet, demo_model, note, mode):
    async with start(fleet, demo_model, mode) as running:
        with Stranger(fleet) as stranger:
            outcome, seconds = await end_of_start(running, lambda event: event.phase == "connecting")
        assert len(stranger.connections) >= 3
        words = outcome.reason if isinstance(outcome, Failed) else ""
        note("stranger first", f"{mode} all", "ends" if words else "goes on", seconds, words)
        if mode == "pipeline":
            assert isinstance(outcome, Ready)
        elif words:  # MLX's ring takes whoever comes first
            assert any(name in words for name in fleet.names)
            assert "tensor group" in words
    await starts_now(fleet, demo_model, mode)


@pytest.mark.parametrize("which", ["ours", "theirs"])
async def test_a_node_with_another_version(fleet, demo_model, note, which):
    middle = fleet.agents.started[1].node_id
    fleet.agent(middle).kill()
    fleet.wish("version", which)
    fleet.replace(middle)
    fleet.forget_wishes()
    async with start(fleet, demo_model) as running:
        failed, seconds = await end_of_start(running, lambda _: True)
        assert isinstance(failed, Failed)
        note("version changed", "middle", "ends", seconds, failed.reason)
        assert fleet.names[1] in failed.reason
        assert "install the same" in failed.reason
    middle = fleet.agents.started[1].node_id
    fleet.agent(middle).kill()
    fleet.replace(middle)
    await starts_now(fleet, demo_model)
