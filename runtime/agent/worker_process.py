"""A worker process as its agent sees it: started, spoken to, and ended for certain."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from resources import starting
from resources.processes import is_stopped, work_done
from runtime.agent.awake import Awake
from runtime.engine.orders import AnyOrder, AnyReport, LoadStalled, Quit, Stay, decode_report, encode_line
from runtime.engine.stalls import StillWatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runtime.engine.orders import Launch

log = logging.getLogger(__name__)

_QUIT_SECONDS = 4.0
_TERMINATE_SECONDS = 1.0
_LINE_LIMIT_BYTES = 1 << 20
_STAY_SECONDS = 4.0
_LOOK_SECONDS = 0.4
_START_STILL_SECONDS = 30.0 if sys.platform == "darwin" else 4.0
"""macOS checks libraries that it has not seen before, and meanwhile the process that wants them stands still."""


class WorkerProcess:
    """One rank's process, in a process group of its own."""

    def __init__(self, launch: Launch, log_file: Path, on_report: Callable[[AnyReport], None]) -> None:
        self._launch = launch
        self._log_file = log_file
        self._on_report = on_report
        self._process: asyncio.subprocess.Process | None = None
        self._awake: Awake | None = None

    async def start(self) -> None:
        """Start the process and tell it who it is."""
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        with self._log_file.open("ab") as log_stream:
            self._process = await asyncio.create_subprocess_exec(
                *starting.pomona("worker", "--job", self._launch.job, "--rank", str(self._launch.rank)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log_stream,
                start_new_session=True,
                limit=_LINE_LIMIT_BYTES,
            )  # its arguments are for people who read the process list
        if sys.platform == "darwin":
            self._awake = await Awake.start(self._process.pid)
        await self.order(self._launch)

    async def order(self, order: AnyOrder) -> None:
        """Send an order; a worker that is gone already does not mind."""
        stdin = self._started.stdin
        assert stdin is not None  # it was asked for
        with contextlib.suppress(ConnectionError):
            stdin.write(encode_line(order))
            await stdin.drain()

    async def wait(self) -> int:
        """Pass on every report until the process is gone; returns its status."""
        stdout = self._started.stdout
        assert stdout is not None  # it was asked for
        staying = asyncio.create_task(self._say_stay(), name=f"lease of rank {self._launch.rank}")
        starting_up = asyncio.create_task(self._watch_start(), name=f"start of rank {self._launch.rank}")
        try:
            async for line in stdout:
                starting_up.cancel()  # from here on it watches itself
                try:
                    self._on_report(decode_report(line))
                except msgspec.DecodeError:
                    log.exception("rank %s reported something that cannot be read", self._launch.rank)
            return await self._started.wait()
        finally:
            staying.cancel()
            starting_up.cancel()
            if self._awake is not None:
                await self._awake.close()

    async def end(self) -> None:
        """Ask, then terminate, then kill the process group; returns when the process is gone."""
        self._signal_group(signal.SIGCONT)  # one that was stopped could not hear
        await self.order(Quit())
        if await self._gone_within(_QUIT_SECONDS):
            return
        self._signal_group(signal.SIGTERM)
        if await self._gone_within(_TERMINATE_SECONDS):
            return
        self._signal_group(signal.SIGKILL)
        await self._started.wait()

    @property
    def is_stopped(self) -> bool:
        """Whether a signal keeps it from running."""
        return self._started.returncode is None and is_stopped(self._started.pid)

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its process group."""
        return self._started.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def _started(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError("the worker was not started")
        return self._process

    async def _say_stay(self) -> None:
        while True:
            await asyncio.sleep(_STAY_SECONDS)
            await self.order(Stay())

    async def _watch_start(self) -> None:
        """Report for a worker that hangs before it can report anything itself."""
        stalls = StillWatch(_START_STILL_SECONDS)
        while (work := work_done(self.pid)) is not None:
            if stalled_seconds := stalls.look(time.monotonic(), *work):
                self._on_report(LoadStalled(stalled_seconds))
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _gone_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._started.wait()
                return True
        return False

    def _signal_group(self, number: signal.Signals) -> None:
        if self._started.returncode is None:  # otherwise its number may be another's by now
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._started.pid, number)
