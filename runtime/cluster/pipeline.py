"""The pipeline of a session: workers on the agents of its nodes, joined by hops, whose driver works on the requests.

Tells of every trouble what is lost by it. What follows from that is the session's to decide.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Self

import aiohttp

from runtime.agent.connector import Connector
from runtime.agent.messages import JobRefused, RankExited, RankReport, RankStopped
from runtime.cluster import told
from runtime.cluster.crew import STALL_SECONDS, Crew
from runtime.cluster.driver_link import DriverLink
from runtime.cluster.jobs import SILENT_SECONDS, Jobs
from runtime.cluster.launch import used_links
from runtime.cluster.link_survey import links_for
from runtime.cluster.meeting import introduce, reachable
from runtime.cluster.messages import Failed, Ready
from runtime.cluster.troubles import GRACE_SECONDS, Trouble, Troubles
from runtime.cluster.versions import version_warnings
from runtime.engine.hop import Credentials
from runtime.engine.orders import LoadStalled, PeerLost, StepStatistics, WorkerFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from discovery.home import Home
    from runtime.agent.messages import AgentMessage
    from runtime.cluster.launch import JobFacts, RankState
    from runtime.cluster.messages import LoadProgress, MemoryBack
    from runtime.cluster.model_supply import ModelSupply
    from runtime.cluster.nodes import KnownNode
    from runtime.cluster.requests import Requests
    from runtime.engine.orders import AnyReport
    from runtime.errors import PomonaError
    from runtime.planning.values import Plan

log = logging.getLogger(__name__)

_AGENT_SECONDS = 1.5
"""The silence of a worker says nothing while its agent, which passes its word on, has been silent for so long."""
_SPINNING_CPU_SHARE = 0.5
"""A rank whose step stalls while it takes more of a core waits for another of its tensor group, or hangs busily."""


class Pipeline:
    """An async context; leaving it gives up every agent. ``publish`` is told how far each rank is."""

    def __init__(
        self,
        home: Home,
        facts: JobFacts,
        requests: Requests,
        supply: ModelSupply,
        publish: Callable[[LoadProgress], None],
        on_trouble: Callable[[Trouble], None],
    ) -> None:
        self._home = home
        self._key = facts.key
        self._credentials = Credentials(str(home.identity.certificate_path), str(home.identity.key_path))
        self._requests = requests
        self._supply = supply
        self._http = aiohttp.ClientSession(connector=Connector())
        self._jobs = Jobs(self._http, home, self._take, self._on_node_gone)
        self._crew = Crew(self._jobs, facts, lambda rank: publish(told.progress(rank)))
        self._troubles = Troubles(self._crew, on_trouble)
        self._ending: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*self._ending, return_exceptions=True)
        await self._jobs.close()
        await self._http.close()

    @property
    def ranks(self) -> Sequence[RankState]:
        """Those of the newest plan, in order."""
        return self._crew.ranks

    async def build(self, plan: Plan, known: Mapping[str, KnownNode]) -> Ready:
        """Bring up the pipeline of ``plan`` over ``known`` nodes, and have it go on with every open request.

        Raises :class:`PomonaError`, or :class:`HopError` if the driver does not answer.
        """
        self._requests.leave_driver()
        nodes = reachable([known[node_id] for node_id in plan.node_ids])
        await introduce(self._home, nodes)
        links = await links_for(self._home, plan, nodes)
        folders = await self._supply.provide(plan, nodes, known.values())
        await self._jobs.open(nodes)
        await self._crew.build(plan, nodes, folders, links)
        await self._requests.forget_drivers()
        epoch, driver = self._crew.epoch, self._crew.ranks[0].hop_address
        take, on_lost = self._requests.answers.take, partial(self._on_link_lost, epoch)
        self._requests.go_on(await DriverLink.open(driver, self._key, self._credentials, epoch, take, on_lost))
        held = tuple(map(told.held, self._crew.ranks))
        return Ready(plan, held, used_links(plan, links), version_warnings(node.resources for node in nodes))

    def leave(self) -> None:
        """The pipeline is about to be built again."""
        self._crew.leave()

    def lose(self, trouble: Trouble) -> None:
        """Do without what is lost when the pipeline is built again."""
        if trouble.lost_worker is not None:
            self._crew.lose(trouble.lost_worker)
        elif trouble.lost_node_id is not None:
            self._crew.lose_node(trouble.lost_node_id)
            self._jobs.forget(trouble.lost_node_id)

    def fail(self, error: PomonaError) -> None:
        """Have :meth:`build`, if it is under way, raise ``error``."""
        self._crew.fail(error)

    async def end(self) -> tuple[MemoryBack, ...]:
        """Have every worker ended; returns what came back on the nodes."""
        for name in await self._jobs.end():
            log.warning("%s did not confirm that its workers are gone", name)
        for back in self._jobs.memory:
            log.log(logging.WARNING if back.memory.missing_bytes else logging.INFO, "%s", back)
        return tuple(self._jobs.memory)

    def look(self, now_seconds: float) -> None:
        """Notice who has fallen silent, also while nobody asks; to be called several times a second."""
        self._jobs.look(now_seconds)
        self._crew.look(now_seconds)
        for rank in self._crew.silent(SILENT_SECONDS):
            if self._jobs.silent_seconds(rank.planned.node_id) < _AGENT_SECONDS:
                self._end_rank(rank, f"made no sign for {SILENT_SECONDS:.0f} s")
        self._look_for_stalls(now_seconds)

    def _look_for_stalls(self, now_seconds: float) -> None:
        """Steps that are on their way and come to nobody; a rank that hangs in one tells sooner."""
        answers = self._requests.answers
        if self._requests.has_driver and answers.active and now_seconds - answers.last_sign_seconds > STALL_SECONDS:
            behind = min(self._crew.ranks, key=lambda rank: rank.statistics.steps if rank.statistics else 0)
            self._end_rank(behind, f"made no step for {STALL_SECONDS:.0f} s")

    def _end_rank(self, rank: RankState, what: str) -> None:
        name, node_id = rank.planned.node_name, rank.planned.node_id
        self._crew.lose(rank.number)
        self._ending.append(asyncio.create_task(self._jobs.end_rank(rank), name=f"end of rank {rank.number}"))
        self._troubles.tell(Trouble(Failed(f"The worker on {name} {what}.", node_id), lost_worker=rank.number))

    # What agents and workers say ----------------------------------------------------------------------------------

    def _take(self, node: KnownNode, message: AgentMessage) -> None:
        node_id, name = node.resources.node_id, node.resources.name
        match message:
            case RankReport(number, report):
                self._take_report(number, report)
            case RankExited(number, status) if exited := self._crew.rank(number):  # otherwise it was let go
                reason = f"The worker on {name} {told.end_of_worker(status, exited.phase)}."
                # One that ended by itself has said why; only one that was ended from outside has not.
                tell = self._troubles.tell_late if status >= 0 else self._troubles.tell
                tell(Trouble(Failed(reason, node_id), lost_worker=number))
            case RankStopped(number) if stopped := self._crew.rank(number):
                self._end_rank(stopped, "was stopped by a signal (SIGSTOP)")
            case JobRefused(reason):
                self._troubles.tell(Trouble(Failed(f"{name}: {reason}", node_id), is_mendable=False))
            case _:
                pass

    def _take_report(self, number: int, report: AnyReport) -> None:
        rank = self._crew.take(number, report)
        if rank is None:
            return
        node_id, name = rank.planned.node_id, rank.planned.node_name
        match report:
            case WorkerFailed(reason, lost_peer):
                tell = self._troubles.tell_late if lost_peer else self._troubles.tell
                tell(Trouble(Failed(f"{name}: {reason}", node_id), lost_worker=number))
            case PeerLost(reason, epoch) if epoch == self._crew.epoch:
                self._troubles.tell_late(Trouble(Failed(f"{name}: {reason}", node_id)))
            case LoadStalled(seconds) if self._crew.is_alive(number):
                self._end_rank(rank, f"has neither computed nor read anything for {seconds:.0f} s while {rank.phase}")
            case StepStatistics(stalled_seconds=stalled) if stalled:
                is_behind_others = rank.launch.ranks_in_stage > 1 and report.stalled_cpu_share > _SPINNING_CPU_SHARE
                grace_seconds = GRACE_SECONDS if is_behind_others else 0.0
                asyncio.get_running_loop().call_later(grace_seconds, self._end_stalled, rank, stalled)

    def _end_stalled(self, rank: RankState, seconds: float) -> None:
        if self._crew.is_alive(rank.number) and not self._crew.is_leaving:  # otherwise a truer cause came meanwhile
            self._end_rank(rank, f"has been in one step for {seconds:.0f} s")

    def _on_node_gone(self, node: KnownNode, reason: str) -> None:
        node_id = node.resources.node_id
        self._troubles.tell(Trouble(Failed(reason, node_id), lost_node_id=node_id))

    def _on_link_lost(self, epoch: int, reason: str) -> None:
        if epoch == self._crew.epoch and self._crew.ranks:
            driver = self._crew.ranks[0].planned
            reason = f"The connection to the first rank on {driver.node_name} broke: {reason}."
            self._troubles.tell_late(Trouble(Failed(reason, driver.node_id)))
