"""A session: a plan on its way to running workers, the chats that they answer, and their end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import signal
import time
from typing import TYPE_CHECKING

import aiohttp

from runtime.agent.client import JobClient
from runtime.agent.messages import JobEnded, JobRefused, RankExited, RankReport
from runtime.cluster.answers import Answers
from runtime.cluster.driver_link import DriverLink
from runtime.cluster.launch import connect_order, rank_states
from runtime.cluster.messages import (
    Cancel,
    Chat,
    Ended,
    Failed,
    LoadProgress,
    RankHeld,
    Ready,
    Rejected,
    ServerMessage,
)
from runtime.engine.frames import CancelRequest, Sampling, Submit
from runtime.engine.hop import HopError
from runtime.engine.orders import Loaded, Progress, WorkerFailed
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runtime.agent.messages import AgentMessage
    from runtime.cluster.launch import RankState, SessionRequest
    from runtime.cluster.text import ChatText
    from runtime.engine.orders import AnyReport
    from runtime.models.layout import ModelLayout

log = logging.getLogger(__name__)

_STALL_SECONDS = 120.0
"""A rank that shows no progress for so long while it loads, or while answers wait, counts as hanging."""
_LOST_PEER_GRACE_SECONDS = 0.7
"""Ranks that see a neighbour go report at once; the true cause (an exit, a lost node) may come a moment later."""
_END_SECONDS = 10.0
_TICK_SECONDS = 0.1


class Session:
    """Runs ``request`` once. ``publish`` gets every message for front ends, on the loop that runs :meth:`run`."""

    def __init__(
        self, request: SessionRequest, folder: Path, layout: ModelLayout, publish: Callable[[ServerMessage], None]
    ) -> None:
        self._request = request
        self._folder = folder
        self._layout = layout
        self._publish = publish
        self._key = secrets.token_bytes(32)
        job = secrets.token_hex(16)
        self._ranks = rank_states(request, job, self._key, prefix_token_limit=layout.context_tokens)
        self._jobs: dict[str, JobClient] = {}
        self._ended_jobs: set[str] = set()
        self._listeners: list[asyncio.Task[None]] = []
        self._answers = Answers(publish)
        self._text: ChatText | None = None
        self._link: DriverLink | None = None
        self._ready: Ready | None = None
        self._changed = asyncio.Event()
        self._over: asyncio.Future[Failed | Ended] = asyncio.get_running_loop().create_future()

    # What front ends ask ------------------------------------------------------------------------------------------

    def snapshot(self) -> list[ServerMessage]:
        """What a front end that comes now has to know."""
        return [self._ready] if self._ready else [self._progress(rank) for rank in self._ranks]

    async def chat(self, chat: Chat) -> None:
        """Begin an answer, or publish why not."""
        arrived_seconds = time.monotonic()
        text, link = self._text, self._link
        if text is None or link is None or self._over.done():
            self._publish(Rejected(chat.request_id, "The model is not loaded yet; wait until it is ready."))
            return
        if self._answers.number_of(chat.request_id) is not None:
            self._publish(Rejected(chat.request_id, "A request with this name is being answered already."))
            return
        try:
            prompt = await asyncio.to_thread(text.prompt, chat.messages)
        except PomonaError as error:
            self._publish(Rejected(chat.request_id, str(error)))
            return
        room = self._layout.context_tokens - len(prompt)
        if room < 1 or not prompt:
            self._publish(
                Rejected(
                    chat.request_id,
                    f"The chat has {len(prompt)} tokens and this model reads at most {self._layout.context_tokens}; "
                    "begin a new chat."
                    if prompt
                    else "The chat is empty; write something.",
                )
            )
            return
        number = self._answers.begin(chat.request_id, len(prompt), text.streamer(), arrived_seconds)
        seed = secrets.randbits(63) if chat.seed is None else chat.seed
        sampling = Sampling(chat.temperature, chat.top_p, seed=seed)
        await self._send(link, Submit(number, prompt, min(chat.max_tokens, room), text.end_tokens, sampling))

    async def cancel(self, cancel: Cancel) -> None:
        """End an answer; one that is over already needs nothing."""
        number = self._answers.number_of(cancel.request_id)
        if number is not None and self._link is not None:
            await self._send(self._link, CancelRequest(number))

    def stop(self) -> None:
        """End the session; :meth:`run` returns when no worker is left."""
        if not self._over.done():
            self._over.set_result(Ended())

    # The life of a session ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start, serve, and end; publishes ``Failed`` or ``Ended`` last."""
        async with aiohttp.ClientSession() as http:
            live = asyncio.create_task(self._live(http), name="session")
            live.add_done_callback(self._note_error)
            try:
                outcome = await self._over
                live.cancel()
                for name in await self._end_jobs():
                    log.warning("%s did not confirm that its workers are gone", name)
            finally:
                await _cancel(live, *self._listeners)
                if self._link is not None:
                    await self._link.close()
                await asyncio.gather(*(job.close() for job in self._jobs.values()))
        self._publish(outcome)

    async def _live(self, http: aiohttp.ClientSession) -> None:
        async with asyncio.TaskGroup() as group:
            text_loading = group.create_task(asyncio.to_thread(_read_text, self._folder))
            await self._open_jobs(http)
            for rank in self._ranks:
                self._publish(self._progress(rank))
                await self._job_of(rank).start_rank(rank.launch)
            await self._until(lambda: all(rank.hop_port for rank in self._ranks))
            for rank in self._ranks:
                await self._job_of(rank).connect_rank(rank.rank, connect_order(rank, self._ranks))
            await self._until(lambda: all(rank.phase == "ready" for rank in self._ranks))
            self._text = await text_loading
            self._link = await DriverLink.open(
                self._ranks[0].hop_address, self._key, self._answers.take, self._on_link_lost
            )
            self._ready = Ready(self._request.plan, tuple(map(_held, self._ranks)))
            self._publish(self._ready)
            await self._tick()

    async def _open_jobs(self, http: aiohttp.ClientSession) -> None:
        nodes = {rank.node.resources.node_id: rank.node for rank in self._ranks}
        for node_id, node in nodes.items():
            name = node.resources.name
            self._jobs[node_id] = await JobClient.open(http, node.host, node.port, self._request.key, name)
            self._listeners.append(asyncio.create_task(self._listen(node_id, name), name=f"job on {name}"))

    def _job_of(self, rank: RankState) -> JobClient:
        return self._jobs[rank.planned.node_id]

    async def _until(self, done: Callable[[], bool]) -> None:
        """Wait for reports until ``done``; a rank that shows no progress for too long fails the session."""
        for rank in self._ranks:
            rank.last_sign_seconds = time.monotonic()
        while not done():
            self._changed.clear()
            slowest = min(
                (rank for rank in self._ranks if rank.phase != "ready"), key=lambda rank: rank.last_sign_seconds
            )
            try:
                async with asyncio.timeout(max(0.0, slowest.last_sign_seconds + _STALL_SECONDS - time.monotonic())):
                    await self._changed.wait()
            except TimeoutError:
                raise PomonaError(
                    f"{slowest.planned.node_name} made no progress for {_STALL_SECONDS:.0f} s while {slowest.phase}; "
                    "look at its log and start again."
                ) from None

    async def _tick(self) -> None:
        """Publish the throughput while something runs, and once after; notice a driver that has gone silent."""
        busy = False
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            throughput = self._answers.throughput()
            if busy or throughput.active_requests:
                self._publish(throughput)
            busy = throughput.active_requests > 0 or throughput.decode_tokens_per_second > 0
            silent_seconds = time.monotonic() - self._answers.last_sign_seconds
            if throughput.active_requests and silent_seconds > _STALL_SECONDS:
                behind = min(self._ranks, key=lambda rank: rank.statistics.steps if rank.statistics else 0)
                raise PomonaError(f"{behind.planned.node_name} made no step for {_STALL_SECONDS:.0f} s; start again.")

    # What agents and workers say ----------------------------------------------------------------------------------

    async def _listen(self, node_id: str, name: str) -> None:
        try:
            async for message in self._jobs[node_id].messages():
                self._take(node_id, name, message)
        except PomonaError as error:
            self._fail(Failed(str(error), node_id))
        self._ended_jobs.add(node_id)
        self._changed.set()
        self._fail(Failed(f"{name} is gone: it was quit, went to sleep or lost its network.", node_id))

    def _take(self, node_id: str, name: str, message: AgentMessage) -> None:
        match message:
            case RankReport(rank, report):
                self._take_report(self._ranks[rank], report)
            case RankExited(rank, status):
                exited = self._ranks[rank]
                # A worker that ended by itself has said why; only one that was ended from outside has not.
                if status < 0:
                    self._fail(Failed(f"The worker on {name} was ended by {_signal_name(-status)}.", node_id))
                else:
                    reason = f"The worker on {name} ended unexpectedly (exit status {status}) while {exited.phase}."
                    self._fail(Failed(reason, node_id), late=True)
            case JobRefused(reason):
                self._fail(Failed(f"{name}: {reason}", node_id))
            case JobEnded():
                self._ended_jobs.add(node_id)
        self._changed.set()

    def _take_report(self, rank: RankState, report: AnyReport) -> None:
        rank.last_sign_seconds = time.monotonic()
        rank.take(report)
        if isinstance(report, Progress | Loaded):
            self._publish(self._progress(rank))
        elif isinstance(report, WorkerFailed):
            reason = f"{rank.planned.node_name}: {report.reason}"
            self._fail(Failed(reason, rank.planned.node_id), late=report.lost_peer)

    def _on_link_lost(self, reason: str) -> None:
        driver = self._ranks[0].planned
        self._fail(
            Failed(f"The connection to the first rank on {driver.node_name} broke: {reason}.", driver.node_id),
            late=True,
        )

    async def _send(self, link: DriverLink, frame: Submit | CancelRequest) -> None:
        try:
            await link.send(frame)
        except HopError as error:
            self._on_link_lost(str(error))

    # The end ------------------------------------------------------------------------------------------------------

    def _fail(self, failed: Failed, *, late: bool = False) -> None:
        """End the session with this cause; a ``late`` one yields to any that comes within a moment."""
        if late:
            asyncio.get_running_loop().call_later(_LOST_PEER_GRACE_SECONDS, self._fail, failed)
        elif not self._over.done():
            log.error("session failed: %s", failed.reason)
            self._over.set_result(failed)

    def _note_error(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if not isinstance(error, PomonaError | HopError):
            log.error("the controller failed", exc_info=error)
        self._fail(Failed(str(error) if isinstance(error, PomonaError) else f"The session broke: {error}"))

    async def _end_jobs(self) -> list[str]:
        """Have every agent end its workers; returns the names of nodes that did not confirm it in time."""
        for node_id, job in self._jobs.items():
            if node_id not in self._ended_jobs:
                try:
                    await job.end()
                except PomonaError:
                    self._ended_jobs.add(node_id)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                while self._jobs.keys() - self._ended_jobs:
                    self._changed.clear()
                    await self._changed.wait()
        open_jobs = self._jobs.keys() - self._ended_jobs
        return [rank.planned.node_name for rank in self._ranks if rank.planned.node_id in open_jobs]

    def _progress(self, rank: RankState) -> LoadProgress:
        planned = rank.planned
        return LoadProgress(
            rank.rank, planned.node_id, planned.node_name, rank.phase, rank.loaded_bytes, planned.weight_bytes
        )


def _read_text(folder: Path) -> ChatText:
    from runtime.cluster.text import ChatText  # imports transformers: seconds, so not on the loop

    return ChatText(folder)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _held(rank: RankState) -> RankHeld:
    return RankHeld(
        rank.rank,
        rank.planned.node_id,
        rank.planned.node_name,
        rank.launch.first_layer,
        rank.launch.end_layer - 1,
        rank.planned.weight_bytes,
        rank.held_bytes,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
