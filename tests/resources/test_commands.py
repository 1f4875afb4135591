"""Commands off the loop: answered, failed, endless, too long; nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import sys
import time

import psutil
import pytest

from resources import commands
from resources.commands import Command, run_command


def shell(script: str, **options) -> Command:
    return Command(("sh", "-c", script), **options)


async def all_dead(*pids: int) -> None:
    """A process that was killed closes its files a moment before it is gone, and is a zombie until it is reaped."""

    def lives(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    async with asyncio.timeout(10):
        while any(map(lives, pids)):  # noqa: ASYNC110  no event tells of the end of another's child
            await asyncio.sleep(0.01)


async def test_the_output_of_a_command():
    assert await run_command(shell("echo one; echo two >&2; cat; echo $LC_ALL")) == "one\nC\n"


async def test_bytes_that_are_no_text():
    assert await run_command(shell(r"printf 'a\377b'")) == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("words", [("no-such-command-anywhere",), ("/",), ("sh", "-c", "echo half; exit 3"), ("a\0b",)])
async def test_a_command_that_fails_tells_nothing(words):
    assert await run_command(Command(words)) is None


async def test_some_commands_may_fail_and_still_tell():
    assert await run_command(shell("echo half; exit 1", any_status=True)) == "half\n"


async def test_a_command_that_hangs_is_ended_with_its_children_while_the_loop_runs_on(tmp_path):
    pids = tmp_path / "pids"
    hanging = shell(f"sleep 60 & echo $$ $! > {pids}; wait", limit_seconds=0.5)
    started = time.monotonic()
    answer = asyncio.create_task(run_command(hanging))
    turns = 0
    while not answer.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert await answer is None
    assert turns > 5
    assert time.monotonic() - started < 30
    await all_dead(*map(int, pids.read_text().split()))


async def test_a_child_that_outlives_its_command_is_ended_too(tmp_path):
    pid_file = tmp_path / "pid"
    assert await run_command(shell(f"sleep 60 & echo $! > {pid_file}; echo done", limit_seconds=0.5)) is None
    await all_dead(int(pid_file.read_text()))


async def test_a_command_that_says_too_much_is_ended(monkeypatch):
    monkeypatch.setattr(commands, "MAX_OUTPUT_BYTES", 1000)
    assert await run_command(shell("exec cat /dev/zero", limit_seconds=30)) is None


async def test_a_command_ends_with_whoever_asked(tmp_path):
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    task = asyncio.create_task(run_command(shell(f"echo $$ > {fifo}; exec sleep 60", limit_seconds=60)))
    pid = int(await asyncio.to_thread(fifo.read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not psutil.pid_exists(pid)


def test_from_a_thread_without_a_loop():
    assert asyncio.run(run_command(Command((sys.executable, "-c", "print(1)"), limit_seconds=30))) == "1\n"
