"""A session: a plan on its way to running workers, the chats that they answer, and their end."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import msgspec

from resources.sleep import SleepWatch, slept_words
from runtime.agent.connector import Connector
from runtime.agent.folder import open_home
from runtime.agent.messages import JobRefused, RankExited, RankReport, RankStopped
from runtime.agent.models.messages import ModelOrder
from runtime.cluster import told
from runtime.cluster.crew import STALL_SECONDS, Crew
from runtime.cluster.driver_link import DriverLink
from runtime.cluster.health import Health, of_running
from runtime.cluster.jobs import SILENT_SECONDS, Jobs
from runtime.cluster.launch import MOST_CONTEXTS, JobFacts, used_links
from runtime.cluster.link_book import planning_links
from runtime.cluster.link_survey import links_for
from runtime.cluster.meeting import introduce, reachable
from runtime.cluster.messages import (
    Cancel,
    Chat,
    Ended,
    Ending,
    Failed,
    ModelFetch,
    PlanRefused,
    Ready,
    Recovering,
    Resplit,
    RunMeasured,
    ServerMessage,
    Statistics,
)
from runtime.cluster.model_shares import wanted_by
from runtime.cluster.models import ModelProvider
from runtime.cluster.recovery import Recoveries, plan_for_those_left
from runtime.cluster.requests import Requests
from runtime.cluster.run_measured import run_measured
from runtime.cluster.versions import version_refusal, version_warnings
from runtime.engine.hop import Credentials, HopError
from runtime.engine.orders import CacheLimits, PeerLost, WorkerFailed
from runtime.errors import NodeLost, PomonaError
from runtime.models.manifest import manifest_of
from runtime.models.parts import model_parts
from runtime.planning.plan import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runtime.agent.messages import AgentMessage
    from runtime.agent.models.messages import FetchProgress
    from runtime.cluster.launch import RankState, SessionRequest
    from runtime.cluster.nodes import KnownNode
    from runtime.cluster.text import ModelText
    from runtime.engine.orders import AnyReport
    from runtime.models.layout import ModelLayout
    from runtime.models.manifest import Manifest
    from runtime.planning.plan import Plan

log = logging.getLogger(__name__)

_LOST_PEER_GRACE_SECONDS = 0.7
"""Ranks that see a neighbour go report at once; the true cause (an exit, a lost node) may come a moment later."""
_TICK_SECONDS = 0.1
_SAMPLE_SECONDS = 0.25
"""What a worker has counted is known here after so long."""
_WAKING_SECONDS = 30.0
"""What breaks so soon after a sleep broke because of it."""
_AGENT_SECONDS = 1.5
"""The silence of a worker says nothing while its agent, which passes its word on, has been silent for so long."""


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
            CacheLimits(layout.context_tokens, prefix_tokens=layout.context_tokens * MOST_CONTEXTS),
            identity.certificate_pem,
            request.hops,
        )
        self._http = aiohttp.ClientSession(connector=Connector())
        self._jobs = Jobs(self._http, self._home, self._take, self._on_node_gone)
        self._crew = Crew(self._jobs, facts, lambda rank: publish(told.progress(rank)))
        self._requests = Requests(layout.context_tokens, publish)
        self._manifest: Manifest | None = None
        self._ready: Ready | None = None
        self._rebuilding: asyncio.Task[None] | None = None
        self._left_epoch = -1
        """The newest that is not to go on."""
        self._recoveries = Recoveries()
        self._sleep = SleepWatch()
        self._ending: list[asyncio.Task[None]] = []
        self._over: asyncio.Future[Failed | Ended] = asyncio.get_running_loop().create_future()

    # What front ends ask ------------------------------------------------------------------------------------------

    def snapshot(self) -> list[ServerMessage]:
        """What a front end that comes now has to know."""
        progress = (
            [] if self._ready and self._requests.has_driver else [told.progress(rank) for rank in self._crew.ranks]
        )
        return [*([self._ready] if self._ready else []), *progress]

    async def chat(self, chat: Chat) -> None:
        """Begin an answer, or publish why not."""
        if self._ready is None or self._over.done():
            self._requests.reject(chat, "The model is not loaded yet; wait until it is ready.")
        else:
            await self._requests.chat(chat)

    def cancel(self, cancel: Cancel) -> None:
        """End an answer; one that is over already needs nothing."""
        self._requests.cancel(cancel)

    def resplit(self, resplit: Resplit) -> None:
        """Go over to another plan, or publish why not."""
        known = self._nodes | {node.resources.node_id: node for node in resplit.nodes}
        if refusal := self._resplit_refusal(resplit.plan, known):
            self._publish(PlanRefused(refusal))
            return
        self._nodes, self._plan = known, resplit.plan
        self._rebuild()

    async def rebalance(self) -> None:
        """Publish what the stages took, and the split that follows."""
        if self._ready is None or self._over.done():
            self._publish(RunMeasured((), "The model is being loaded; ask again when it has answered something."))
        else:
            await asyncio.sleep(_SAMPLE_SECONDS)
            self._publish(await self._measured())

    def stop(self) -> None:
        """End the session; :meth:`run` returns when no worker is left."""
        if not self._over.done():
            self._over.set_result(Ended())

    # What the API asks ---------------------------------------------------------------------------------------------

    @property
    def requests(self) -> Requests:
        """Where requests go."""
        return self._requests

    @property
    def model_names(self) -> tuple[str, ...]:
        """What clients may call the model, the usual name first."""
        repository = self._manifest.repository if self._manifest is not None else ""
        return tuple(dict.fromkeys(filter(None, (self._layout.name, repository))))

    @property
    def context_tokens(self) -> int:
        """Of prompt and answer together."""
        return self._plan.context_tokens or self._layout.context_tokens

    def health(self) -> Health:
        """How every rank is now."""
        now, answers = time.monotonic(), self._requests.answers
        ranks = tuple(told.health(rank, now) for rank in self._crew.ranks)
        if self._over.done():
            return Health("ending", "The session is over.", answers.active, ranks)
        if self._ready is None or not self._requests.has_driver:
            return Health("loading", "The model is being loaded.", answers.active, ranks)
        return of_running(ranks, answers.active, now - answers.last_sign_seconds)

    # The life of a session ----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start, serve, and end; publishes ``Failed`` or ``Ended`` last."""
        async with self._http:
            live = asyncio.create_task(self._live(), name="session")
            live.add_done_callback(self._note_error)
            try:
                outcome = await self._over
                live.cancel()
                reason = outcome.reason if isinstance(outcome, Failed) else "The model was stopped."
                self._requests.answers.break_off(reason)
                for name in await self._jobs.end():
                    log.warning("%s did not confirm that its workers are gone", name)
                for back in self._jobs.memory:
                    log.log(logging.WARNING if back.memory.missing_bytes else logging.INFO, "%s", back)
            finally:
                await _cancel(live, *([self._rebuilding] if self._rebuilding is not None else []))
                await self._requests.close()
                await asyncio.gather(*self._ending, return_exceptions=True)
                await self._jobs.close()
        self._publish(Ended(tuple(self._jobs.memory)) if isinstance(outcome, Ended) else outcome)

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            text_loading = group.create_task(asyncio.to_thread(_read_text, self._folder))
            building = group.create_task(self._build(text_loading))
            group.create_task(self._watch())
            await building
            await self._tick()

    async def _build(self, text_loading: asyncio.Task[ModelText] | None = None) -> None:
        """Bring up the pipeline of the plan, then have it go on with every open request."""
        self._requests.leave_driver()
        planned_ids = dict.fromkeys(rank.node_id for stage in self._plan.stages for rank in stage.ranks)
        nodes = reachable([self._nodes[node_id] for node_id in planned_ids])
        await introduce(self._home, nodes)
        links = await links_for(self._home, self._plan, nodes)
        folders = await self._provide(nodes)
        await self._jobs.open(nodes)
        await self._crew.build(self._plan, nodes, folders, links)
        if text_loading is not None:
            self._requests.read_with(await text_loading)
        await self._requests.forget_drivers()
        epoch, driver = self._crew.epoch, self._crew.ranks[0].hop_address
        take, on_lost = self._requests.answers.take, partial(self._on_link_lost, epoch)
        self._requests.go_on(await DriverLink.open(driver, self._key, self._credentials, epoch, take, on_lost))
        self._ready = Ready(
            self._plan,
            tuple(map(told.held, self._crew.ranks)),
            used_links(self._plan, links),
            version_warnings(node.resources for node in nodes),
        )
        self._publish(self._ready)

    def _rebuild(self) -> None:
        """Build the pipeline of the plan as it is now, whatever is being built."""
        before = self._rebuilding
        self._left_epoch = self._crew.epoch

        async def rebuild() -> None:
            if before is not None:
                await _cancel(before)
            await self._build()

        self._rebuilding = asyncio.create_task(rebuild(), name="rebuild")
        self._rebuilding.add_done_callback(self._note_error)

    async def _provide(self, nodes: Sequence[KnownNode]) -> dict[str, str]:
        """Have every node get what its layers need; returns the model's folder on each."""
        if self._manifest is None:
            self._manifest = await asyncio.to_thread(manifest_of, self._folder)
        manifest = self._manifest
        parts = await asyncio.to_thread(model_parts, manifest)
        order = ModelOrder(manifest.name, manifest.repository, manifest.revision, str(self._folder))
        provider = ModelProvider(self._home, order, parts, self._on_fetch, folder_on=self._request.folder_on)
        planned = {node.resources.node_id for node in nodes}
        others = reachable([*nodes, *(node for node_id, node in self._nodes.items() if node_id not in planned)])
        return await provider.provide(nodes, wanted_by(self._plan, parts), others=others[len(nodes) :])

    def _on_fetch(self, node: KnownNode, words: str, progress: FetchProgress | None) -> None:
        done, total = (progress.done_bytes, progress.total_bytes) if progress else (0, 0)
        rate, left = (progress.bytes_per_second, progress.seconds_left) if progress else (0.0, None)
        resources = node.resources
        self._publish(ModelFetch(resources.node_id, resources.name, words, done, total, rate, left))

    def _resplit_refusal(self, plan: Plan, known: Mapping[str, KnownNode]) -> str:
        if self._ready is None or not self._requests.has_driver or self._over.done():
            return "The model is being loaded; change the split when it is ready."
        if plan.model != self._plan.model or plan.layer_count != self._plan.layer_count:
            return f"This session runs {self._plan.model}; stop it to run {plan.model}."
        ranks = [rank for stage in plan.stages for rank in stage.ranks]
        strangers = [rank.node_name for rank in ranks if rank.node_id not in known]
        if strangers:
            return f"{strangers[0]} is not known to this session; look whether it is in reach."
        return version_refusal(known[rank.node_id].resources for rank in ranks) or ""

    # While it runs ------------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        """Publish the throughput while something runs, and once after."""
        busy = False
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._sleep.look()
            throughput = self._requests.answers.throughput()
            if busy or throughput.active_requests:
                self._publish(throughput)
                self._publish(self._statistics(throughput.time_seconds))
            was_busy = busy
            busy = throughput.active_requests > 0 or throughput.decode_tokens_per_second > 0
            if was_busy and not busy and self._requests.has_driver:
                self._publish(await self._measured())

    async def _measured(self) -> RunMeasured:
        """The run as it was measured; planning takes some milliseconds, more with many nodes."""
        resources = [node.resources for node in self._nodes.values()]
        links = planning_links(self._home.folder, self._nodes)
        return await asyncio.to_thread(
            run_measured, self._layout, self._plan, resources, links, tuple(self._crew.ranks)
        )

    async def _watch(self) -> None:
        """Notice who has fallen silent, also while nobody asks."""
        while not self._over.done():
            await asyncio.sleep(_TICK_SECONDS)
            now = time.monotonic()
            self._jobs.look(now)
            self._crew.look(now)
            for rank in self._crew.silent(SILENT_SECONDS):
                if self._jobs.silent_seconds(rank.planned.node_id) < _AGENT_SECONDS:
                    self._end_rank(rank, f"made no sign for {SILENT_SECONDS:.0f} s")
            self._look_for_stalls(now)

    def _look_for_stalls(self, now: float) -> None:
        """A rank that hangs in a step makes signs, and no steps."""
        answers = self._requests.answers
        if self._requests.has_driver and answers.active and now - answers.last_sign_seconds > STALL_SECONDS:
            behind = min(self._crew.ranks, key=lambda rank: rank.statistics.steps if rank.statistics else 0)
            self._end_rank(behind, f"made no step for {STALL_SECONDS:.0f} s")

    def _end_rank(self, rank: RankState, what: str) -> None:
        name, node_id = rank.planned.node_name, rank.planned.node_id
        self._ending.append(asyncio.create_task(self._jobs.end_rank(rank), name=f"end of rank {rank.number}"))
        self._on_trouble(Failed(f"The worker on {name} {what}.", node_id), lost=rank.number)

    # What agents and workers say ----------------------------------------------------------------------------------

    def _take(self, node: KnownNode, message: AgentMessage) -> None:
        node_id, name = node.resources.node_id, node.resources.name
        match message:
            case RankReport(number, report):
                self._take_report(number, report)
            case RankExited(number, status) if exited := self._crew.rank(number):  # otherwise it was let go
                # A worker that ended by itself has said why; only one that was ended from outside has not.
                reason = f"The worker on {name} {told.end_of_worker(status, exited.phase)}."
                self._on_trouble(Failed(reason, node_id), lost=number, late=status >= 0)
            case RankStopped(number) if stopped := self._crew.rank(number):
                self._end_rank(stopped, "was stopped by a signal (SIGSTOP)")
            case JobRefused(reason):
                self._fail(Failed(f"{name}: {reason}", node_id))
            case _:
                pass

    def _on_node_gone(self, node: KnownNode, reason: str) -> None:
        self._on_trouble(Failed(reason, node.resources.node_id), lost=node.resources.node_id)

    def _take_report(self, number: int, report: AnyReport) -> None:
        rank = self._crew.take(number, report)
        if rank is None:
            return
        node_id, name = rank.planned.node_id, rank.planned.node_name
        match report:
            case WorkerFailed(reason, lost_peer):
                self._on_trouble(Failed(f"{name}: {reason}", node_id), lost=number, late=lost_peer)
            case PeerLost(reason, epoch) if epoch == self._crew.epoch:
                self._on_trouble(Failed(f"{name}: {reason}", node_id), late=True)

    def _on_link_lost(self, epoch: int, reason: str) -> None:
        if epoch == self._crew.epoch and self._crew.ranks:
            driver = self._crew.ranks[0].planned
            reason = f"The connection to the first rank on {driver.node_name} broke: {reason}."
            self._on_trouble(Failed(reason, driver.node_id), late=True)

    def _statistics(self, time_seconds: float) -> Statistics:
        return Statistics(time_seconds, tuple(told.times(rank) for rank in self._crew.ranks))

    # The end ------------------------------------------------------------------------------------------------------

    def _on_trouble(self, cause: Failed, *, lost: int | str | None = None, late: bool = False) -> None:
        """Go on without what is ``lost`` (a rank's number, a node's id, or a hop alone), or end with ``cause``.

        A ``late`` cause is what a rank saw of another's end: it waits for a moment, and counts if none came first.
        """
        if late:
            loop, epoch = asyncio.get_running_loop(), self._crew.epoch
            loop.call_later(_LOST_PEER_GRACE_SECONDS, self._on_late_trouble, cause, lost, epoch)
        elif not self._over.done() and not self._recover(cause, lost):
            self._fail(cause)

    def _on_late_trouble(self, cause: Failed, lost: int | str | None, epoch: int) -> None:
        is_member = isinstance(lost, int) and self._crew.rank(lost) is not None
        if epoch < self._crew.epoch:
            if is_member:  # it was to stay in the pipeline that has come after
                self._on_trouble(cause, lost=lost)
        elif epoch != self._left_epoch:
            self._on_trouble(cause, lost=lost)
        elif isinstance(lost, int):  # the pipeline is about to be rebuilt
            self._crew.lose(lost)

    def _recover(self, cause: Failed, lost: int | str | None) -> bool:
        """Begin to rebuild the pipeline on what is left; False if it cannot be."""
        if self._ready is None or not self._request.keep_running or not self._recoveries.take(time.monotonic()):
            return False
        if isinstance(lost, int):
            self._crew.lose(lost)
        elif lost is not None:
            self._nodes.pop(lost, None)
            self._crew.lose_node(lost)
            self._jobs.forget(lost)
        plan = plan_for_those_left(
            self._layout, self._plan, self._nodes.values(), planning_links(self._home.folder, self._nodes)
        )
        if isinstance(plan, Refusal):
            log.warning("cannot go on: %s", plan.reason)
            return False
        log.warning("going on after: %s", cause.reason)
        self._plan = plan
        self._publish(Recovering(cause.reason, cause.node_id))
        self._rebuild()
        return True

    def _fail(self, failed: Failed) -> None:
        """End the session with this cause, or with this machine's sleep, of which it is what was left to see."""
        if not self._over.done():
            if slept := self._sleep.within(_WAKING_SECONDS):
                reason = f"This machine {slept_words(slept)}, and lost its session: {failed.reason}"
                failed = msgspec.structs.replace(failed, reason=reason)
            log.error("session failed: %s", failed.reason)
            self._publish(Ending(failed.reason, failed.node_id))
            self._over.set_result(msgspec.structs.replace(failed, at=time.time()))
            self._crew.fail(PomonaError(failed.reason))

    def _note_error(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if not isinstance(error, PomonaError | HopError):
            log.error("the controller failed", exc_info=error)
        if isinstance(error, NodeLost):  # while the pipeline was rebuilt because of another loss
            self._on_trouble(Failed(str(error), error.node_id), lost=error.node_id)
        else:
            self._fail(Failed(str(error) if isinstance(error, PomonaError) else f"The session broke: {error}"))


def _read_text(folder: Path) -> ModelText:
    from runtime.cluster.text import ModelText  # imports transformers: seconds, so not on the loop

    return ModelText(folder)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
