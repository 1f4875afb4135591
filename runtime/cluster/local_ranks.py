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
from runtime.cluster.crew import Crew
from runtime.cluster.driver_link import DriverLink
from runtime.cluster.launch import JobFacts
from runtime.cluster.nodes import KnownNode
from runtime.engine.hop import Credentials
from runtime.engine.orders import CacheLimits, PeerLost, Rebuild, WorkerFailed
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from types import TracebackType

    from runtime.cluster.launch import RankState
    from runtime.engine.frames import AnyFrame
    from runtime.engine.orders import AnyReport, Connect, HopKind, Launch
    from runtime.planning.values import Plan

_LOOPBACK = "127.0.0.1"
_START_SECONDS = 120.0
_UNKNOWN = Versions("", "", "", "", "")
_NO_LIMITS = CacheLimits()


class LocalRanks:
    """An async context: inside it the model is loaded and :meth:`send` and :meth:`next_frame` speak with the driver."""

    def __init__(
        self, plan: Plan, model_folder: Path, limits: CacheLimits = _NO_LIMITS, *, hops: HopKind = "tls"
    ) -> None:
        self._stack = AsyncExitStack()
        self._identity = self._stack.enter_context(temporary_identity())
        self._plan = plan
        self._key = secrets.token_bytes(32)
        self._credentials = Credentials(str(self._identity.certificate_path), str(self._identity.key_path))
        certificate = self._identity.certificate_pem
        facts = JobFacts(secrets.token_hex(16), self._key, str(model_folder), limits, certificate, hops)
        self._crew = Crew(self, facts, lambda _rank: None)
        self.frames: asyncio.Queue[AnyFrame | PomonaError] = asyncio.Queue()
        """What the driver says; an error ends it."""
        self._error: PomonaError | None = None
        self._ending = False
        self._link: DriverLink | None = None
        self._logs = Path()
        self._workers: dict[int, WorkerProcess] = {}
        self._watches: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        try:
            self._logs = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pomona-ranks-")))
            self._stack.push_async_callback(self._end_workers)
            await self._build(self._plan)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def ranks(self) -> list[RankState]:
        """The ranks of the plan, in order."""
        return self._crew.ranks

    async def rebuild(self, plan: Plan) -> None:
        """Go over to another plan of the same model. Requests that run are lost: submit them again."""
        await self._build(plan)

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
        return [self._workers[rank.number].pid for rank in self._crew.ranks]

    # What the crew asks -------------------------------------------------------------------------------------------

    async def start(self, rank: RankState) -> None:
        """As :class:`runtime.cluster.crew.Hands`."""
        number = rank.number
        worker = WorkerProcess(
            self._ours(rank.launch), self._logs / f"rank{number}.log", partial(self._on_report, number)
        )
        await worker.start()
        self._workers[number] = worker
        self._watches.append(asyncio.create_task(self._watch(number, worker), name=f"rank {number}"))

    async def order(self, rank: RankState, order: Connect | Rebuild) -> None:
        """As :class:`runtime.cluster.crew.Hands`."""
        if isinstance(order, Rebuild):
            order = Rebuild(self._ours(order.launch))
        await self._workers[rank.number].order(order)

    async def end_rank(self, rank: RankState) -> None:
        """As :class:`runtime.cluster.crew.Hands`."""
        await self._workers[rank.number].end()

    def _ours(self, launch: Launch) -> Launch:
        certificate_path, key_path = self._credentials
        return msgspec.structs.replace(launch, certificate_path=certificate_path, key_path=key_path)

    async def _build(self, plan: Plan) -> None:
        nodes = {rank.node_id: rank.node_name for rank in plan.ranks}
        known = tuple(
            KnownNode(
                _LOOPBACK,
                0,
                NodeResources(node_id, name, "", 0, 0, virtual=True, versions=_UNKNOWN),
                self._identity.certificate_pem,
            )
            for node_id, name in nodes.items()
        )
        before, self._link = self._link, None
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._crew.build(plan, known)
        except TimeoutError:
            raise PomonaError(f"The ranks were not ready within {_START_SECONDS:.0f} s.") from None
        if before is not None:
            await before.close()
        driver, epoch = self.ranks[0].hop_address, self._crew.epoch
        self._link = await DriverLink.open(
            driver, self._key, self._credentials, epoch, self.frames.put_nowait, partial(self._on_link_lost, epoch)
        )

    def _on_link_lost(self, epoch: int, reason: str) -> None:
        if epoch == self._crew.epoch:
            self._fail(f"The driver is gone: {reason}.")

    def _on_report(self, number: int, report: AnyReport) -> None:
        rank = self._crew.take(number, report)
        if rank is None:
            return
        match report:
            case WorkerFailed(reason):
                self._fail(f"Rank {rank.rank}: {reason}")
            case PeerLost(reason, epoch) if epoch == self._crew.epoch:
                self._fail(f"Rank {rank.rank}: {reason}")

    async def _watch(self, number: int, worker: WorkerProcess) -> None:
        status = await worker.wait()
        rank = self._crew.rank(number)
        if rank is not None and not self._ending:
            self._fail(f"The worker of rank {rank.rank} ended (status {status}) while {rank.phase}.")

    def _fail(self, reason: str) -> None:
        if self._error is None and not self._ending:
            self._error = PomonaError(reason)
            self.frames.put_nowait(self._error)
            self._crew.fail(self._error)

    async def _end_workers(self) -> None:
        self._ending = True
        if self._link is not None:
            await self._link.close()
        await asyncio.gather(*(worker.end() for worker in self._workers.values()))
        await asyncio.gather(*self._watches)
