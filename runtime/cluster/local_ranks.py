"""The ranks of a plan as worker processes of this very process: no agents, no text, token ids in and out.

For checking a split against the whole model, and for benchmarks. A session (session.py) is the same over agents.
All ranks and the caller share one certificate, made for the occasion.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from discovery.identity import temporary_identity
from resources.node import NodeResources, Versions
from runtime.agent.worker_process import WorkerProcess
from runtime.cluster.driver_link import DriverLink
from runtime.cluster.launch import SessionRequest, connect_order, rank_states
from runtime.cluster.nodes import KnownNode
from runtime.engine.orders import WorkerFailed
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from runtime.cluster.launch import RankState
    from runtime.engine.frames import AnyFrame
    from runtime.engine.orders import AnyReport
    from runtime.planning.plan import Plan

_LOOPBACK = "127.0.0.1"
_START_SECONDS = 120.0
_UNKNOWN = Versions("", "", "", "", "")


class LocalRanks:
    """An async context: inside it the model is loaded and ``send`` and ``frames`` speak with the driver."""

    def __init__(self, plan: Plan, model_folder: Path) -> None:
        self._plan = plan
        self._model_folder = model_folder
        self._key = secrets.token_bytes(32)
        self.ranks: list[RankState] = []
        self.frames: asyncio.Queue[AnyFrame | PomonaError] = asyncio.Queue()
        """What the driver says; an error ends it."""
        self._stack = AsyncExitStack()
        self._changed = asyncio.Event()
        self._error: PomonaError | None = None
        self._ending = False
        self._link: DriverLink | None = None
        self._workers: list[WorkerProcess] = []

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._start()
        except TimeoutError:
            await self._stack.aclose()
            raise PomonaError(f"The ranks were not ready within {_START_SECONDS:.0f} s.") from None
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def send(self, frame: AnyFrame) -> None:
        """Give the driver a request."""
        assert self._link is not None  # it is open inside the context
        await self._link.send(frame)

    async def next_frame(self) -> AnyFrame:
        """What the driver says next. Raises :class:`PomonaError` when a rank has failed."""
        frame = await self.frames.get()
        if isinstance(frame, PomonaError):
            raise frame
        return frame

    @property
    def pids(self) -> list[int]:
        """The worker processes, in rank order."""
        return [worker.pid for worker in self._workers]

    async def _start(self) -> None:
        logs = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pomona-ranks-")))
        identity = self._stack.enter_context(temporary_identity())
        self.ranks = self._rank_states(identity.certificate_pem)
        for rank in self.ranks:
            launch = msgspec.structs.replace(
                rank.launch, certificate_path=str(identity.certificate_path), key_path=str(identity.key_path)
            )
            worker = WorkerProcess(launch, logs / f"rank{rank.rank}.log", partial(self._on_report, rank))
            await worker.start()
            self._workers.append(worker)
            watching = asyncio.create_task(self._watch(rank, worker), name=f"rank {rank.rank}")
            self._stack.push_async_callback(asyncio.wait, {watching})
        self._stack.push_async_callback(self._end_workers)
        await self._until(lambda: all(rank.hop_port for rank in self.ranks))
        for rank, worker in zip(self.ranks, self._workers, strict=True):
            await worker.order(connect_order(rank, self.ranks))
        await self._until(lambda: all(rank.phase == "ready" for rank in self.ranks))
        address = self.ranks[0].hop_address
        self._link = await DriverLink.open(address, self._key, self.frames.put_nowait, self._fail)
        self._stack.push_async_callback(self._link.close)

    def _rank_states(self, certificate: str) -> list[RankState]:
        nodes = {rank.node_id: rank.node_name for stage in self._plan.stages for rank in stage.ranks}
        known = tuple(
            KnownNode(
                _LOOPBACK, 0, NodeResources(node_id, name, "", 0, 0, virtual=True, versions=_UNKNOWN), certificate
            )
            for node_id, name in nodes.items()
        )
        request = SessionRequest(self._plan, str(self._model_folder), known, "")
        return rank_states(request, secrets.token_hex(16), self._key, certificate)

    def _on_report(self, rank: RankState, report: AnyReport) -> None:
        rank.take(report)
        if isinstance(report, WorkerFailed):
            self._fail(f"Rank {rank.rank}: {report.reason}")
        self._changed.set()

    async def _watch(self, rank: RankState, worker: WorkerProcess) -> None:
        status = await worker.wait()
        if not self._ending:
            self._fail(f"The worker of rank {rank.rank} ended (status {status}) while {rank.phase}.")

    def _fail(self, reason: str) -> None:
        if self._error is None and not self._ending:
            self._error = PomonaError(reason)
            self.frames.put_nowait(self._error)
        self._changed.set()

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            if self._error is not None:
                raise self._error
            self._changed.clear()
            await self._changed.wait()

    async def _end_workers(self) -> None:
        self._ending = True
        await asyncio.gather(*(worker.end() for worker in self._workers))
