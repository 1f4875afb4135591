"""A Mac stays awake while a worker lives: with a program in caffeinate's place that says how it was called."""

from __future__ import annotations

import asyncio
import sys
import types

import psutil

from runtime.agent.awake import Awake
from runtime.agent.worker_process import WorkerProcess
from runtime.app_nap import stay_responsive
from runtime.engine.orders import Launch

LAUNCH = Launch("job", bytes(32), "127.0.0.1", "/model", 0, 0, 1, 0, 1, 0, 1)


def install(folder, monkeypatch):
    called = folder / "called"
    program = folder / "caffeinate"
    program.write_text(f'#!/bin/sh\necho "$$ $*" > {called}.new && mv {called}.new {called}\nexec sleep 60\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    return called


async def content_of(path):
    async with asyncio.timeout(30):
        while not path.exists():  # noqa: ASYNC110  another process writes it
            await asyncio.sleep(0.01)
    return path.read_text().split()


async def test_a_worker_on_a_mac_keeps_it_awake_until_it_ends(tmp_path, monkeypatch):
    called = install(tmp_path, monkeypatch)
    monkeypatch.setattr(sys, "platform", "darwin")
    worker = WorkerProcess(LAUNCH, tmp_path / "log", lambda _report: None)
    await worker.start()
    waiting = asyncio.create_task(worker.wait())
    pid, *words = await content_of(called)
    assert words == ["-i", "-m", "-s", "-w", str(worker.pid)]
    assert psutil.pid_exists(int(pid))
    await worker.end()
    await waiting
    assert not psutil.pid_exists(int(pid))


async def test_a_machine_without_caffeinate_runs_workers_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    await (await Awake.start(1)).close()


def test_app_nap_is_declined_on_a_mac_alone(monkeypatch):
    declined = []
    monkeypatch.setitem(sys.modules, "appnope", types.SimpleNamespace(nope=lambda: declined.append(True)))
    stay_responsive()
    assert declined == ([True] if sys.platform == "darwin" else [])
    monkeypatch.setattr(sys, "platform", "darwin")
    declined.clear()
    stay_responsive()
    assert declined == [True]
