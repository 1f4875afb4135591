"""A job's ranks on one node, for as long as its controller holds the connection."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from aiohttp import WSMsgType

from resources.footprint import footprint_bytes
from resources.memory_parts import WorkersMemory
from resources.memory_watch import unused_bytes, watch_return
from runtime.agent.job_logs import log_path
from runtime.agent.messages import (
    SIGN_SECONDS,
    AgentMessage,
    ControllerMessage,
    EndJob,
    EndRank,
    JobEnded,
    JobRefused,
    OrderRank,
    RankExited,
    RankReport,
    RankStopped,
    StartRank,
    StillHere,
    decode_from_controller,
    encode,
)
from runtime.agent.worker_process import WorkerProcess
from runtime.engine.orders import Loaded, Rebuild, StepStatistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from discovery.identity import Identity
    from runtime.engine.orders import AnyReport, Connect, Launch

log = logging.getLogger(__name__)

_RANK_LIMIT = 64
_OUTGOING_LIMIT = 10_000


class Job:
    """Serves one controller over ``connection``; every worker that it started is gone when :meth:`serve` returns."""

    def __init__(
        self,
        connection: web.WebSocketResponse,
        identity: Identity,
        may_listen: Callable[[str], bool],
        log_folder: Path,
    ) -> None:
        self._socket = connection
        self._may_listen = may_listen
        self._identity = identity
        self._log_folder = log_folder
        self._workers: dict[int, WorkerProcess] = {}
        self._weight_bytes: dict[int, int] = {}
        self._kv_bytes: dict[int, int] = {}
        self._waits: set[asyncio.Task[None]] = set()
        self._outgoing: asyncio.Queue[AgentMessage] = asyncio.Queue(_OUTGOING_LIMIT)
        self._let_go: set[int] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._stopped: set[int] = set()
        self._ending = False

    async def serve(self) -> None:
        """Do what the controller says until it closes the connection or is gone."""
        sending = asyncio.create_task(self._send(), name="job sender")
        watching = asyncio.create_task(self._watch(), name="job watch")
        try:
            async for frame in self._socket:
                if frame.type is WSMsgType.TEXT:
                    await self._obey(frame.data)
        finally:
            watching.cancel()
            await self._end_workers()
            sending.cancel()
            await asyncio.gather(sending, watching, return_exceptions=True)

    async def close(self) -> None:
        """Break off: :meth:`serve` returns when the workers are gone."""
        await self._socket.close()

    @property
    def memory(self) -> WorkersMemory:
        """What its workers have now."""
        footprints = [footprint_bytes(worker.pid) for worker in self._workers.values() if worker.is_running]
        return WorkersMemory(
            sum(filter(None, footprints)), sum(self._weight_bytes.values()), sum(self._kv_bytes.values())
        )

    async def _obey(self, text: str) -> None:
        try:
            message: ControllerMessage = decode_from_controller(text)
        except msgspec.DecodeError as error:
            self._say(
                JobRefused(f"This node does not understand its controller ({error}); install the same Pomona on both.")
            )
            return
        match message:
            case StartRank(launch):
                await self._start(launch)
            case OrderRank(rank, order):
                if rank in self._workers:
                    await self._order(self._workers[rank], order)
            case EndRank(rank):
                if (leaving := self._workers.get(rank)) is not None:
                    self._let_go.add(rank)
                    task = asyncio.create_task(leaving.end(), name=f"end of rank {rank}")
                    self._leaving.add(task)
                    task.add_done_callback(self._leaving.discard)
            case EndJob():
                held_bytes, unused_before = self.memory.footprint_bytes, await unused_bytes()
                await self._end_workers()
                self._say(JobEnded(await watch_return(held_bytes, unused_before) if held_bytes else None))

    async def _start(self, launch: Launch) -> None:
        if launch.rank in self._workers or self._ending:
            self._say(JobRefused(f"Rank {launch.rank} cannot be started here a second time."))
            return
        if len(self._workers) >= _RANK_LIMIT:
            self._say(JobRefused(f"{_RANK_LIMIT} workers of this job run here already."))
            return
        if not (Path(launch.model_folder) / "config.json").is_file():
            self._say(JobRefused(f"The model folder {launch.model_folder} is not on this node."))
            return
        if (refusal := self._listen_refusal(launch.host)) is not None:
            self._say(JobRefused(refusal))
            return
        if self._leaving:  # what they hold may be what this one needs
            await asyncio.wait(self._leaving)
        rank = launch.rank

        def on_report(report: AnyReport) -> None:
            self._count(rank, report)
            self._say(RankReport(rank, report))

        log_file = log_path(self._log_folder, launch.job, rank)
        worker = WorkerProcess(self._ours(launch), log_file, on_report)
        try:
            await worker.start()
        except OSError as error:
            log.exception("rank %d could not be started", rank)
            self._say(JobRefused(f"No worker can be started here ({error.strerror})."))
            return
        self._workers[rank] = worker
        wait = asyncio.create_task(self._wait(rank, worker), name=f"rank {rank}")
        self._waits.add(wait)
        wait.add_done_callback(self._waits.discard)

    def _count(self, rank: int, report: AnyReport) -> None:
        match report:
            case Loaded(held_bytes):
                self._weight_bytes[rank] = held_bytes
            case StepStatistics(kv_bytes=kv_bytes):
                self._kv_bytes[rank] = kv_bytes
            case _:
                pass

    async def _order(self, worker: WorkerProcess, order: Connect | Rebuild) -> None:
        if isinstance(order, Rebuild):
            order = Rebuild(self._ours(order.launch))
        await worker.order(order)

    def _ours(self, launch: Launch) -> Launch:
        """With what this node alone decides."""
        return msgspec.structs.replace(
            launch,
            certificate_path=str(self._identity.certificate_path),
            key_path=str(self._identity.key_path),
        )

    def _listen_refusal(self, host: str) -> str | None:
        """Why a worker cannot listen on ``host``, the address at which the job's other nodes are to reach it."""
        try:
            if not self._may_listen(host):
                return f"It may not listen on {host}: only this machine itself may reach it before it is paired."
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            with socket.socket(family, socket.SOCK_STREAM) as trial:
                trial.bind(socket.getaddrinfo(host, 0, family, socket.SOCK_STREAM)[0][4])
        except (OSError, ValueError) as error:
            return f"The other nodes cannot reach it at {host} ({error}); look at its network."
        return None

    async def _watch(self) -> None:
        """Say that this node is there, and which worker was stopped: at the second look, as a moment is nothing."""
        while True:
            await asyncio.sleep(SIGN_SECONDS)
            self._say(StillHere())
            stopped = {rank for rank, worker in self._workers.items() if worker.is_stopped}
            for rank in stopped & self._stopped - self._let_go:
                self._say(RankStopped(rank))
            self._stopped = stopped

    async def _wait(self, rank: int, worker: WorkerProcess) -> None:
        status = await worker.wait()
        del self._workers[rank]  # in a long job many come and go
        self._weight_bytes.pop(rank, None)
        self._kv_bytes.pop(rank, None)
        if not self._ending and rank not in self._let_go:
            self._say(RankExited(rank, status))

    async def _end_workers(self) -> None:
        self._ending = True
        await asyncio.gather(*(worker.end() for worker in self._workers.values()))
        await asyncio.gather(*self._waits, *self._leaving)

    def _say(self, message: AgentMessage) -> None:
        try:
            self._outgoing.put_nowait(message)
        except asyncio.QueueFull:
            log.warning("the controller does not read; dropped %s", type(message).__name__)

    async def _send(self) -> None:
        while True:
            message = await self._outgoing.get()
            try:
                await self._socket.send_str(encode(message))
            except ConnectionError:
                log.info("the controller is gone")
                return
