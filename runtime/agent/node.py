"""The node as its agent knows it: what the system says, its settings, its workers, and whether it slept."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from typing import TYPE_CHECKING

from aiohttp import web

from discovery.trust import Role
from resources.calibration import StoredCalibrations, shared
from resources.cpu_load import CpuLoad
from resources.memory_cap import MemoryCap
from resources.memory_parts import NO_WORKERS
from resources.monitor import Monitor
from resources.probe import AgentFacts, snapshot
from resources.sleep import SleepWatch, slept_words
from runtime.agent.access import Route
from runtime.agent.calibration import measure_once
from runtime.agent.memory_messages import CAP_PATH, MemoryCapOrder
from runtime.agent.trust_routes import read_body
from runtime.models.models_folder import models_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from resources.memory_parts import WorkersMemory
    from resources.node import Calibration, NodeResources
    from resources.probe import Machine

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0


class AgentNode:
    """Answers what the node ``node_id`` has. ``folder`` keeps what is set for it, ``machine_folder`` what was measured.

    A virtual node has a budget, and perhaps a share of one core and a bandwidth in bytes per second to count with.
    """

    def __init__(
        self,
        machine: Machine,
        node_id: str,
        name: str,
        folder: Path,
        machine_folder: Path,
        *,
        budget_bytes: int | None = None,
        cpu_share: float | None = None,
        bandwidth: int | None = None,
    ) -> None:
        self._machine = machine
        self._node_id = node_id
        self._name = name
        self._folder = folder
        self._budget_bytes = budget_bytes
        self._cpu_share = cpu_share
        self._bandwidth = bandwidth
        self._machine_folder = machine_folder
        self._calibrations = StoredCalibrations(machine_folder)
        self._cap = MemoryCap(folder)
        self._monitor = Monitor()
        self._cpu_load = CpuLoad()
        self._sleep = SleepWatch()

    @property
    def routes(self) -> tuple[Route, ...]:
        return (Route("PUT", CAP_PATH, Role.CONTROLLER, self._set_cap),)

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Keep up with what changes, for the time of the block."""
        tasks = [asyncio.create_task(self._watch_sleep(), name="sleep")]
        if sys.platform == "darwin":  # elsewhere the kernel's own files tell all that is asked
            self._monitor.start()
            tasks.append(asyncio.create_task(self._measure_if_unknown(), name="calibration"))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._monitor.close()

    def resources(self, workers: WorkersMemory = NO_WORKERS) -> NodeResources:
        """What the node has now, ``workers`` being what its workers hold."""
        known = AgentFacts(
            workers,
            self._cap.chosen_bytes,
            self._calibration(),
            self._bandwidth,
            self._sleep.look(),
            self._cpu_load.latest(),
        )
        return snapshot(
            self._machine,
            self._node_id,
            self._name,
            self._budget_bytes,
            self._monitor.latest(),
            models_folder=models_folder(self._folder),
            known=known,
        )

    def _calibration(self) -> Calibration | None:
        calibration = self._calibrations.of_version(self._machine.versions.mlx)
        if calibration is None or self._bandwidth is not None:
            return None
        return calibration if self._cpu_share is None else shared(calibration, self._cpu_share)

    async def _set_cap(self, request: web.Request) -> web.StreamResponse:
        order = await read_body(request, MemoryCapOrder)
        try:
            self._cap.choose(order.cap_bytes)
        except OSError as error:
            raise web.HTTPConflict(text=f"{self._name} cannot keep that ({error.strerror}).") from None
        log.info("Pomona may use at most %s of this node's memory", order.cap_bytes or "the usual part")
        return web.Response(status=204)

    async def _watch_sleep(self) -> None:
        known = self._sleep.look()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if (latest := self._sleep.look()) != known and latest is not None:
                log.warning("this machine %s", slept_words(latest))
            known = latest

    async def _measure_if_unknown(self) -> None:
        """A chip that is in no table is measured, once for each version of MLX."""
        if self._budget_bytes is not None or self.resources().memory_bandwidth_bytes_per_second is not None:
            return
        log.info("the speed of %s is in no table and is measured", self._machine.chip)
        await measure_once(self._machine_folder, self._machine.versions.mlx)
