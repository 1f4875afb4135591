"""What the window needs of ``runtime``: as protocols and functions, so that the bridge can be driven without it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from discovery.address import HostPort
    from discovery.local_network import Verdict
    from gui.checks import Known
    from gui.preferences import Preferences
    from gui.runner import Session
    from runtime.agent.models.messages import HeldModel, ModelOrder
    from runtime.agent.trust_messages import ShownCode
    from runtime.bench.order import BenchOrder, RoundDone
    from runtime.bench.table import Measured
    from runtime.check.result import CheckResult
    from runtime.cluster.catalogue import ModelPlace
    from runtime.cluster.job_logs import LogsOfNode
    from runtime.cluster.links import NodePair
    from runtime.cluster.messages import RankHeld, Serving, StageTimes
    from runtime.cluster.model_desk import Keeping
    from runtime.cluster.model_fetch import OnFetch
    from runtime.cluster.nodes import KnownNode, UnpairedNode
    from runtime.cluster.running_note import RunningNote
    from runtime.models.hub.repository import FoundModel
    from runtime.models.layout import ModelLayout
    from runtime.planning.values import Plan

    Counters = Callable[[], Sequence[StageTimes]]
    Measure = Callable[[Serving, Sequence[RankHeld], Path, BenchOrder, Counters], AsyncIterator[RoundDone | Measured]]
    OnNodes = Callable[[tuple[KnownNode, ...]], None]
    OnUnpaired = Callable[[tuple[UnpairedNode, ...]], None]


class Watcher(Protocol):
    """What the bridge needs of :class:`runtime.cluster.node_watcher.NodeWatcher`."""

    async def start(self) -> None:
        """Begin to look for nodes."""

    async def close(self) -> None:
        """Stop looking."""


class Trust(Protocol):
    """What the bridge needs of :class:`runtime.agent.desk.TrustDesk`."""

    async def pair(self, node: UnpairedNode, code: str) -> None:
        """Pair with a node by the code that it shows."""

    async def remove(self, node_id: str) -> None:
        """Trust a node no more."""

    async def show_code(self) -> ShownCode:
        """Have this machine show a code."""

    async def hide_code(self) -> None:
        """Have it show none."""

    async def add_address(self, place: HostPort) -> None:
        """Look for a node there."""


class Machine(Protocol):
    """What the bridge needs of :class:`runtime.agent.this_machine.ThisMachine`. Each call may block."""

    def check_network(self) -> Verdict:
        """Whether other machines can be found."""

    def shared_at_login(self) -> bool:
        """Whether it is shared at login."""

    def why_not_shared(self) -> str:
        """Why that cannot be switched; empty if it can."""

    def share_at_login(self, *, on: bool) -> None:
        """Switch it."""


class Models(Protocol):
    """What the bridge needs of :class:`runtime.cluster.model_desk.ModelDesk`."""

    @property
    def node_id(self) -> str:
        """This machine's."""

    async def here(self, name: str) -> ModelPlace:
        """What this machine has, under this name."""

    async def on_node(self, node: KnownNode) -> ModelPlace:
        """What a node has."""

    def favourites(self) -> tuple[str, ...]:
        """The names of those that are marked."""

    def mark(self, name: str, *, on: bool) -> None:
        """Mark one, or no more."""

    async def search(self, words: str) -> Sequence[FoundModel]:
        """Those on the hub."""

    async def describe(self, name: str, nodes: Sequence[KnownNode]) -> HeldModel:
        """What one is made of."""

    async def folder(self, order: ModelOrder, nodes: Sequence[KnownNode]) -> Path:
        """From where it can be run."""

    async def order_of(self, folder: Path) -> ModelOrder:
        """Which one is in a folder."""

    async def remove(self, order: ModelOrder, node: KnownNode | None) -> int:
        """Delete it on a node, None for this machine."""

    async def fetch_full(
        self, order: ModelOrder, node: KnownNode, in_reach: Sequence[KnownNode], on_fetch: OnFetch
    ) -> None:
        """Have a node keep all of it."""

    async def fetch_plan(self, folder: Path, plan: Plan, in_reach: Sequence[KnownNode], on_fetch: OnFetch) -> None:
        """Have each node get its layers of a plan."""

    async def forget_unfinished(self, order: ModelOrder, nodes: Sequence[KnownNode]) -> None:
        """Give up what is half done."""

    def keeping(self) -> Keeping:
        """Where models are kept here, and whose token the hub is shown."""

    def keep_token(self, token: str) -> None:
        """Keep a token, or none."""

    def choose_folder(self, folder: Path | None) -> None:
        """Keep new models elsewhere."""


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of ``runtime`` that the bridge drives."""

    watch: Callable[[Path, OnNodes, OnUnpaired], Watcher]
    """Of a home folder."""
    trust: Callable[[Path], Trust]
    machine: Callable[[Path], Machine]
    find_session: Callable[[Path], RunningNote | None]
    """One that outlived an earlier window."""
    attach: Callable[[Path, RunningNote], Awaitable[Session]]
    start_session: Callable[[Plan, Path, Sequence[KnownNode], Path, Preferences], Awaitable[Session]]
    """Of a plan, from a model's folder, on nodes, for the home folder's identity."""
    read_layout: Callable[[Path], ModelLayout]
    survey: Callable[[Path, Sequence[KnownNode]], Awaitable[tuple[NodePair, ...]]]
    """Of the ways between nodes; measures those that are not known yet."""
    models: Callable[[Path], Models]
    demo_model: Callable[[], Path]
    """Its folder; the first time it has to be made."""
    set_memory_cap: Callable[[Path, KnownNode, int | None], Awaitable[None]]
    """What Pomona may use at most of a node's memory, which the node keeps; None is the usual amount."""
    job_logs: Callable[[Path, Sequence[KnownNode], str], Awaitable[tuple[LogsOfNode, ...]]]
    """What a job wrote on nodes, empty the newest of each."""
    report: Callable[[Path, Sequence[KnownNode]], Awaitable[str]]
    """The newest logs of nodes, with names and addresses replaced."""
    measure: Measure
    """Rounds and rows of a benchmark of the session that serves."""
    known_checks: Callable[[Path], Known]
    check: Callable[[Path, Plan], Awaitable[CheckResult]]


def real_services() -> Services:
    """The real ones; imported late, so that pictures and tests of the window alone need none of them."""
    from discovery.browser import Browser
    from discovery.interfaces import all_interfaces
    from gui.preferences import api_options
    from runtime.agent.desk import TrustDesk
    from runtime.agent.folder import open_home
    from runtime.agent.this_machine import ThisMachine
    from runtime.bench.measure import measure
    from runtime.check.process import check_in_process
    from runtime.check.records import known
    from runtime.cluster.client import SessionClient
    from runtime.cluster.job_logs import read_job_logs, report_of
    from runtime.cluster.link_survey import is_here, survey_links
    from runtime.cluster.meeting import introduce
    from runtime.cluster.model_desk import ModelDesk
    from runtime.cluster.node_settings import set_memory_cap
    from runtime.cluster.node_watcher import NodeWatcher
    from runtime.cluster.running_note import running_session
    from runtime.models.demo import demo_model_folder
    from runtime.models.planning_layout import read_planning_layout

    def watch(home: Path, on_nodes: OnNodes, on_unpaired: OnUnpaired) -> NodeWatcher:
        return NodeWatcher(open_home(home), on_nodes, on_unpaired, browser=partial(Browser, look=all_interfaces))

    async def survey(home: Path, nodes: Sequence[KnownNode]) -> tuple[NodePair, ...]:
        if len(nodes) < 2 or all(is_here(node) for node in nodes):
            return ()  # nothing to tell of this machine's loopback
        opened = open_home(home)
        await introduce(opened, nodes)
        return await survey_links(opened, nodes)

    async def start_session(
        plan: Plan, folder: Path, nodes: Sequence[KnownNode], home: Path, preferences: Preferences
    ) -> SessionClient:
        api = await asyncio.to_thread(api_options, preferences, home)
        keep_running = preferences.keep_running
        return await SessionClient.start(plan, folder, nodes, home, keep_running=keep_running, outlives=True, api=api)

    async def set_cap(home: Path, node: KnownNode, cap_bytes: int | None) -> None:
        await set_memory_cap(open_home(home), node, cap_bytes)

    async def job_logs(home: Path, nodes: Sequence[KnownNode], job: str) -> tuple[LogsOfNode, ...]:
        return await read_job_logs(open_home(home), nodes, job)

    async def report(home: Path, nodes: Sequence[KnownNode]) -> str:
        return await report_of(open_home(home), nodes)

    return Services(
        measure=measure,
        job_logs=job_logs,
        report=report,
        set_memory_cap=set_cap,
        watch=watch,
        trust=TrustDesk,
        machine=ThisMachine,
        start_session=start_session,
        find_session=running_session,
        attach=SessionClient.attach,
        read_layout=read_planning_layout,
        survey=survey,
        models=ModelDesk,
        demo_model=demo_model_folder,
        known_checks=known,
        check=check_in_process,
    )
