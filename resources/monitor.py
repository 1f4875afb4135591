"""What changes on a Mac, read in the background for as long as someone asks."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from resources import survey
from resources.commands import run_command
from resources.mac.gpu import Gpu
from resources.mac.macmon import Sensors
from resources.survey import MacMemory, MacPower

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from resources.survey import Run


@dataclass(frozen=True, slots=True)
class Reading:
    """The newest of everything; empty on other systems and before the first answers."""

    memory: MacMemory = field(default_factory=MacMemory)
    gpu: Gpu = field(default_factory=Gpu)
    sensors: Sensors = field(default_factory=Sensors)
    power: MacPower = field(default_factory=MacPower)


@dataclass(frozen=True, slots=True)
class MonitorTimes:
    """Seconds between two questions of a kind, and how long after the last :meth:`Monitor.latest` they go on.

    Each question starts a program, which costs some milliseconds: only what moves within a second is asked so often.
    """

    memory: float = 1.0
    gpu: float = 2.0
    sensors: float = 5.0
    power: float = 20.0
    wanted: float = 5.0
    pressure: float = 5.0


USUAL_TIMES = MonitorTimes()


class Monitor:
    """Keeps a :class:`Reading` fresh on the running loop; costs nothing while nobody asks for it."""

    def __init__(self, run: Run = run_command, times: MonitorTimes = USUAL_TIMES) -> None:
        self._run = run
        self._times = times
        self._reading = Reading()
        self._wanted_until = 0.0
        self._wanted = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def latest(self) -> Reading:
        """The newest answers, at once."""
        self._wanted_until = time.monotonic() + self._times.wanted
        self._wanted.set()
        return self._reading

    def start(self) -> None:
        """Begin; the first answers come after the first :meth:`latest`."""
        times = self._times
        self._tasks = [
            asyncio.create_task(self._keep(ask, seconds), name=ask.__name__)
            for ask, seconds in (
                (self._ask_pages, times.memory),
                (self._ask_pressure, times.pressure),
                (self._ask_gpu, times.gpu),
                (self._ask_sensors, times.sensors),
                (self._ask_power, times.power),
            )
        ]

    async def close(self) -> None:
        """Stop; a command that runs is ended."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, ask: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            await self._wanted.wait()
            if time.monotonic() > self._wanted_until:
                self._wanted.clear()
                continue
            await ask()
            await asyncio.sleep(seconds)

    async def _ask_pages(self) -> None:
        pages = await survey.ask_pages(self._run)
        self._reading = replace(self._reading, memory=replace(self._reading.memory, pages=pages))

    async def _ask_pressure(self) -> None:
        pressure, swap = await survey.ask_pressure(self._run)
        self._reading = replace(self._reading, memory=replace(self._reading.memory, pressure=pressure, swap=swap))

    async def _ask_gpu(self) -> None:
        gpu = await survey.ask_gpu(self._run)
        self._reading = replace(self._reading, gpu=gpu)

    async def _ask_sensors(self) -> None:
        sensors = await survey.ask_sensors(self._run)
        self._reading = replace(self._reading, sensors=sensors)

    async def _ask_power(self) -> None:
        power = await survey.ask_power(self._run)
        self._reading = replace(self._reading, power=power)
