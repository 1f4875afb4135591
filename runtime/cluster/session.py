"""A session: a plan on its way to running workers, the chats that they answer, and their end."""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from runtime.agent.folder import open_home
from runtime.agent.messages import JobRefused, RankExited, RankReport
from runtime.agent.models.messages import ModelOrder
from runtime.cluster.answers import Answers
from runtime.cluster.crew import STALL_SECONDS, Crew
from runtime.cluster.driver_link import DriverLink
from runtime.cluster.jobs import Jobs
from runtime.cluster.launch import JobFacts, used_links
from runtime.cluster.link_survey import links_for
from runtime.cluster.meeting import introduce, reachable
from runtime.cluster.messages import (
    Cancel,
    Chat,
    Ended,
    Failed,
    LoadProgress,
    ModelFetch,
    PlanRefused,
    RankHeld,
    Ready,
    Rejected,
    Resplit,
    ServerMessage,
    StageTimes,
    Statistics,
)
from runtime.cluster.models import ModelProvider, wanted_by
from runtime.engine.frames import CancelRequest, Sampling, Submit
from runtime.engine.hop import Credentials, HopError
from runtime.engine.orders import CacheLimits, PeerLost, StepStatistics, WorkerFailed
from runtime.errors import PomonaError
from runtime.models.manifest import manifest_of
from runtime.models.parts import model_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from runtime.agent.messages import AgentMessage
    from runtime.agent.models.messages import FetchProgress
    from runtime.cluster.launch import RankState, SessionRequest
    from runtime.cluster.nodes import KnownNode
    from runtime.cluster.text import ChatText
    from runtime.engine.orders import AnyReport
    from runtime.models.layout import ModelLayout
    from runtime.models.manifest import Manifest
    from runtime.planning.plan import Plan

log = logging.getLogger(__name__)

_LOST_PEER_GRACE_SECONDS = 0.7
"""Ranks that see a neighbour go report at once; the true cause (an exit, a lost node) may come a moment later."""
_TICK_SECONDS = 0.1


class Session:
    """Runs ``request`` once. ``publish`` gets every message for front ends, on the loop that runs :meth:`run`."""

    def __init__(
        self, request: SessionRequest, folder: Path, layout: ModelLayout, publish: Callable[[ServerMessage], None]
    ) -> None:
        self._request = request
        self._plan = request.plan
        self._nodes = {node.resources.node_id: node for node in request.nodes}
        self._folder = folder
        self._layout = layout
        self._publish = publish
        self._key = secrets.token_bytes(32)
        self._home = open_home(Path(request.home))
        identity = self._home.identity
        self._credentials = Credentials(str(identity.certificate_path), str(identity.key_path))
        facts = JobFacts(
            secrets.token_hex(16),
            self._key,
            request.model_folder,
            CacheLimits(layout.context_tokens, prefix_tokens=layout.context_tokens),
            identity.certificate_pem,
            request.hops,
        )
        self._http = aiohttp.ClientSession()
        self._jobs = Jobs(self._http, self._home, self._take, self._on_node_gone)
        self._crew = Crew(self._jobs, facts, lambda rank: publish(_progress(rank)))
        self._answers = Answers(publish)
        self._manifest: Manifest | None = None
        self._text: ChatText | None = None
        self._link: DriverLink | None = None
        """None while the pipeline is built or rebuilt."""
        self._ready: Ready | None = None
        self._resplitting: asyncio.Task[None] | None = None
        self._over: asyncio.Future[Failed | Ended] = asyncio.get_running_loop().create_future()

    # What front ends ask ------------------------------------------------------------------------------------------

    def snapshot(self) -> list[ServerMessage]:
        """What a front end that comes now has to know."""
        progress = [] if self._ready and self._link else [_progress(rank) for rank in self._crew.ranks]
        return [*([self._ready] if self._ready else []), *progress]

    async def chat(self, chat: Chat) -> None:
        """Begin an answer, or publish why not."""
        arrived_seconds = time.monotonic()
        text = self._text
        if text is None or self._ready is None or self._over.done():
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
        seed = secrets.randbits(63) if chat.seed is None else chat.seed
        sampling = Sampling(chat.temperature, chat.top_p, seed=seed)
        max_tokens = min(chat.max_tokens, self._layout.context_tokens)
        submit = Submit(0, prompt, max_tokens, text.end_tokens, sampling)
        submit = self._answers.begin(chat.request_id, submit, text.streamer(), arrived_seconds)
        if self._link is not None:  # otherwise it begins with the next pipeline
            await self._send(self._link, submit)

    async def cancel(self, cancel: Cancel) -> None:
        """End an answer; one that is over already needs nothing."""
        number = self._answers.number_of(cancel.request_id)
        if number is None:
            return
        if self._link is None:
            self._answers.cancel(number)
        else:
            await self._send(self._link, CancelRequest(number))

    def resplit(self, resplit: Resplit) -> None:
        """Go over to another plan, or publish why not."""
        known = self._nodes | {node.resources.node_id: node for node in resplit.nodes}
        if refusal := self._resplit_refusal(resplit.plan, known.keys()):
            self._publish(PlanRefused(refusal))
            return
        self._nodes, self._plan = known, resplit.plan
        self._resplitting = asyncio.create_task(self._build(), name="resplit")
        self._resplitting.add_done_callback(self._note_error)

    def stop(self) -> None:
        """End the session; :meth:`run` returns when no worker is left."""
        if not self._over.done():
            self._over.set_result(Ended())

    # The life of a session ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start, serve, and end; publishes ``Failed`` or ``Ended`` last."""
        async with self._http:
            live = asyncio.create_task(self._live(), name="session")
            live.add_done_callback(self._note_error)
            try:
                outcome = await self._over
                live.cancel()
                for name in await self._jobs.end():
                    log.warning("%s did not confirm that its workers are gone", name)
            finally:
                await _cancel(live, *([self._resplitting] if self._resplitting is not None else []))
                if self._link is not None:
                    await self._link.close()
                await self._jobs.close()
        self._publish(outcome)

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            text_loading = group.create_task(asyncio.to_thread(_read_text, self._folder))
            building = group.create_task(self._build(text_loading))
            await building
            await self._tick()

    async def _build(self, text_loading: asyncio.Task[ChatText] | None = None) -> None:
        """Bring up the pipeline of the plan, then have it go on with every open request."""
        before, self._link = self._link, None
        planned_ids = {rank.node_id for stage in self._plan.stages for rank in stage.ranks}
        nodes = reachable([self._nodes[node_id] for node_id in planned_ids])
        await introduce(self._home, nodes)
        links = await links_for(self._home, self._plan, nodes)
        folders = await self._provide(nodes)
        await self._jobs.open(nodes)
        await self._crew.build(self._plan, nodes, folders, links)
        if text_loading is not None:
            self._text = await text_loading
        if before is not None:
            await before.close()  # no token of the last pipeline comes after this
        epoch = self._crew.epoch
        driver = self._crew.ranks[0].hop_address
        link = await DriverLink.open(
            driver, self._key, self._credentials, epoch, self._answers.take, partial(self._on_link_lost, epoch)
        )
        for submit in self._answers.unfinished():
            await self._send(link, submit)
        self._link = link
        self._ready = Ready(self._plan, tuple(map(_held, self._crew.ranks)), used_links(self._plan, links))
        self._publish(self._ready)

    async def _provide(self, nodes: Sequence[KnownNode]) -> dict[str, str]:
        """Have every node get what its layers need; returns the model's folder on each."""
        if self._manifest is None:
            self._manifest = await asyncio.to_thread(manifest_of, self._folder)
        manifest = self._manifest
        parts = await asyncio.to_thread(model_parts, manifest)
        order = ModelOrder(manifest.name, manifest.repository, manifest.revision, str(self._folder))
        provider = ModelProvider(self._home, order, parts, self._on_fetch, folder_on=self._request.folder_on)
        return await provider.provide(nodes, wanted_by(self._plan, parts))

    def _on_fetch(self, node: KnownNode, words: str, progress: FetchProgress | None) -> None:
        done, total = (progress.done_bytes, progress.total_bytes) if progress else (0, 0)
        rate, left = (progress.bytes_per_second, progress.seconds_left) if progress else (0.0, None)
        resources = node.resources
        self._publish(ModelFetch(resources.node_id, resources.name, words, done, total, rate, left))

    def _resplit_refusal(self, plan: Plan, known: Collection[str]) -> str:
        if self._ready is None or self._link is None or self._over.done():
            return "The model is being loaded; change the split when it is ready."
        if plan.model != self._plan.model or plan.layer_count != self._plan.layer_count:
            return f"This session runs {self._plan.model}; stop it to run {plan.model}."
        strangers = [rank.node_name for stage in plan.stages for rank in stage.ranks if rank.node_id not in known]
        return f"{strangers[0]} is not known to this session; look whether it is in reach." if strangers else ""

    # While it runs ------------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        """Publish the throughput while something runs, and once after; notice a driver that has gone silent."""
        busy = False
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            throughput = self._answers.throughput()
            if busy or throughput.active_requests:
                self._publish(throughput)
                self._publish(self._statistics(throughput.time_seconds))
            busy = throughput.active_requests > 0 or throughput.decode_tokens_per_second > 0
            silent_seconds = time.monotonic() - self._answers.last_sign_seconds
            if self._link is not None and throughput.active_requests and silent_seconds > STALL_SECONDS:
                behind = min(self._crew.ranks, key=lambda rank: rank.statistics.steps if rank.statistics else 0)
                raise PomonaError(f"{behind.planned.node_name} made no step for {STALL_SECONDS:.0f} s; start again.")

    # What agents and workers say ----------------------------------------------------------------------------------

    def _take(self, node: KnownNode, message: AgentMessage) -> None:
        node_id, name = node.resources.node_id, node.resources.name
        match message:
            case RankReport(number, report):
                self._take_report(number, report)
            case RankExited(number, status) if exited := self._crew.rank(number):  # otherwise it was let go
                # A worker that ended by itself has said why; only one that was ended from outside has not.
                if status < 0:
                    self._fail(Failed(f"The worker on {name} was ended by {_signal_name(-status)}.", node_id))
                else:
                    reason = f"The worker on {name} ended unexpectedly (exit status {status}) while {exited.phase}."
                    self._fail(Failed(reason, node_id), late=True)
            case JobRefused(reason):
                self._fail(Failed(f"{name}: {reason}", node_id))
            case _:
                pass

    def _on_node_gone(self, node: KnownNode, reason: str) -> None:
        self._fail(Failed(reason, node.resources.node_id))

    def _take_report(self, number: int, report: AnyReport) -> None:
        rank = self._crew.take(number, report)
        if rank is None:
            return
        node_id, name = rank.planned.node_id, rank.planned.node_name
        match report:
            case WorkerFailed(reason, lost_peer):
                self._fail(Failed(f"{name}: {reason}", node_id), late=lost_peer)
            case PeerLost(reason, epoch) if epoch == self._crew.epoch:
                self._fail(Failed(f"{name}: {reason}", node_id), late=True)

    def _on_link_lost(self, epoch: int, reason: str) -> None:
        if epoch == self._crew.epoch:
            driver = self._crew.ranks[0].planned
            reason = f"The connection to the first rank on {driver.node_name} broke: {reason}."
            self._fail(Failed(reason, driver.node_id), late=True)

    def _statistics(self, time_seconds: float) -> Statistics:
        return Statistics(time_seconds, tuple(_times(rank) for rank in self._crew.ranks))

    async def _send(self, link: DriverLink, frame: Submit | CancelRequest) -> None:
        try:
            await link.send(frame)
        except HopError as error:
            self._on_link_lost(self._crew.epoch, str(error))

    # The end ------------------------------------------------------------------------------------------------------

    def _fail(self, failed: Failed, *, late: bool = False) -> None:
        """End the session with this cause; a ``late`` one yields to any that comes within a moment."""
        if late:
            asyncio.get_running_loop().call_later(_LOST_PEER_GRACE_SECONDS, self._fail, failed)
        elif not self._over.done():
            log.error("session failed: %s", failed.reason)
            self._over.set_result(failed)
            self._crew.fail(PomonaError(failed.reason))

    def _note_error(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if not isinstance(error, PomonaError | HopError):
            log.error("the controller failed", exc_info=error)
        self._fail(Failed(str(error) if isinstance(error, PomonaError) else f"The session broke: {error}"))


def _read_text(folder: Path) -> ChatText:
    from runtime.cluster.text import ChatText  # imports transformers: seconds, so not on the loop

    return ChatText(folder)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _progress(rank: RankState) -> LoadProgress:
    planned = rank.planned
    return LoadProgress(
        rank.rank, planned.node_id, planned.node_name, rank.phase, rank.loaded_bytes, planned.weight_bytes
    )


def _times(rank: RankState) -> StageTimes:
    counted = rank.statistics or StepStatistics(0, 0, 0.0, 0, 0)
    return StageTimes(
        rank=rank.rank,
        node_id=rank.planned.node_id,
        steps=counted.steps,
        tokens=counted.tokens,
        compute_seconds=counted.compute_seconds,
        wait_seconds=counted.wait_seconds,
        send_seconds=counted.send_seconds,
        sent_bytes=counted.sent_bytes,
        kv_bytes=counted.kv_bytes,
        in_flight=counted.in_flight,
    )


def _held(rank: RankState) -> RankHeld:
    return RankHeld(
        rank.rank,
        rank.planned.node_id,
        rank.planned.node_name,
        rank.launch.first_layer,
        rank.launch.end_layer - 1,
        rank.planned.weight_bytes,
        rank.held_bytes,
        rank.read_bytes,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
