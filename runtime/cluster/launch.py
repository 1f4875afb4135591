"""From a plan to the orders of its ranks. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from runtime.cluster.links import link_between
from runtime.cluster.messages import UsedLink
from runtime.cluster.nodes import KnownNode  # msgspec resolves the annotation when it decodes
from runtime.engine.hop import Address
from runtime.engine.orders import Connect, HopKind, Launch, Listening, Loaded, Progress, StepStatistics
from runtime.planning.values import Plan  # msgspec resolves the annotation when it decodes
from runtime.server.options import ApiOptions  # msgspec resolves the annotation when it decodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runtime.cluster.links import Link
    from runtime.cluster.messages import LoadPhase
    from runtime.engine.orders import AnyReport, CacheLimits
    from runtime.planning.plan import RankPlan

MOST_CONTEXTS = 64
"""As many as there may be requests with caches (``engine/room.py``)."""
_RATE_SECONDS = 1.0
"""Before nothing is said of how fast a rank loads."""


class SessionRequest(msgspec.Struct, frozen=True):
    """All that a controller needs to run a model; comes as one JSON line on its standard input."""

    plan: Plan
    model_folder: str
    nodes: tuple[KnownNode, ...]
    home: str
    """The folder with this machine's identity and trust."""
    key: str
    """Opens this controller to its front ends: a fresh one each time, which never leaves this machine. Both ends are
    processes of one person on the loopback, where certificates would prove nothing more."""
    keep_running: bool = True
    """Go on with what is left when a rank or a node is lost, if the model fits there."""
    hops: HopKind = "tls"
    """How hidden states travel; a plan with tensor groups always uses TLS, because a process has one MLX world."""
    folder_on: tuple[str, ...] | None = None
    """Ids of the nodes that may use ``model_folder`` in place if they see it; the others fetch what their layers need.
    None is all of them."""
    outlives: bool = False
    """Goes on when the front end that started it is gone, and leaves a note for the next one in ``home``."""
    api: ApiOptions | None = None
    """How programs reach the model; None: only front ends do."""

    @property
    def planned_nodes(self) -> tuple[KnownNode, ...]:
        """Those that have a part in the plan, in its order."""
        known = {node.resources.node_id: node for node in self.nodes}
        return tuple(known[node_id] for node_id in self.plan.node_ids)


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is the same for every rank of a job, in every epoch."""

    job: str
    key: bytes
    model_folder: str
    limits: CacheLimits
    controller: str = ""
    """The certificate of whoever will speak with the driver, as PEM."""
    hops: HopKind = "tls"


@dataclass(slots=True)
class RankState:
    """What the controller knows of one rank. The first block is fixed, the second grows while it starts."""

    rank: int
    """Its place in the pipeline."""
    stage: int
    rank_in_stage: int
    planned: RankPlan
    node: KnownNode
    launch: Launch
    reached_at: dict[str, str]
    """Its host, as the nodes with these ids dial it."""

    number: int = 0
    """Of its worker in the job, which stays when the pipeline is rebuilt."""
    is_new: bool = True
    """Whether its worker is started for this epoch."""
    phase: LoadPhase = "starting"
    loaded_bytes: int = 0
    began_loading: tuple[float, int] | None = None
    """When, by ``last_sign_seconds``, and what it had then."""
    hop_port: int = 0
    ring_port: int = 0
    held_bytes: int = 0
    read_bytes: int = 0
    statistics: StepStatistics | None = None
    last_sign_seconds: float = field(default=0.0)

    def give_number(self, number: int, *, is_new: bool) -> None:
        """Say which worker it is."""
        self.number, self.is_new = number, is_new
        self.launch = msgspec.structs.replace(self.launch, rank=number)

    def load_from(self, folder: str) -> None:
        """Say where the model is on its node; empty is where the job says."""
        if folder:
            self.launch = msgspec.structs.replace(self.launch, model_folder=folder)

    def take(self, report: AnyReport) -> bool:
        """Remember what the worker reported; returns whether loading went on. Reports of another epoch are late."""
        match report:
            case Listening(port, ring_port, epoch) if epoch == self.launch.epoch:
                self.hop_port, self.ring_port = port, ring_port
            case Progress(phase, loaded_bytes, epoch) if epoch == self.launch.epoch:
                self.phase, self.loaded_bytes = phase, loaded_bytes
                if phase == "loading" and self.began_loading is None:
                    self.began_loading = (self.last_sign_seconds, loaded_bytes)
                return True
            case Loaded(held_bytes, read_bytes, epoch) if epoch == self.launch.epoch:
                self.phase, self.held_bytes, self.read_bytes = "ready", held_bytes, read_bytes
                self.loaded_bytes = self.planned.weight_bytes
                return True
            case StepStatistics():
                self.statistics = report
            case _:
                pass
        return False

    @property
    def load_bytes_per_second(self) -> float:
        """While it loads, and has for long enough to tell; else zero."""
        if self.phase != "loading" or self.began_loading is None:
            return 0.0
        seconds = self.last_sign_seconds - self.began_loading[0]
        return (self.loaded_bytes - self.began_loading[1]) / seconds if seconds >= _RATE_SECONDS else 0.0

    @property
    def hop_address(self) -> Address:
        """Where this controller dials it."""
        return Address(self.node.host, self.hop_port, self.node.certificate)

    def hop_address_from(self, caller: RankState) -> Address:
        """Where another rank dials it."""
        return Address(self.reached_at[caller.planned.node_id], self.hop_port, self.node.certificate)


def rank_states(
    facts: JobFacts, plan: Plan, nodes: Sequence[KnownNode], links: Sequence[Link] = (), epoch: int = 0
) -> list[RankState]:
    """One state for each rank of the plan, in rank order: stages in model order, ranks of a stage side by side.

    ``links`` has the one that two nodes use; without one a node is dialled where this controller reaches it.
    """
    by_id = {node.resources.node_id: node for node in nodes}
    certificates = dict.fromkeys([facts.controller, *(by_id[node_id].certificate for node_id in plan.node_ids)])
    states: list[RankState] = []
    for stage_index, stage in enumerate(plan.stages):
        for rank_in_stage, planned in enumerate(stage.ranks):
            node = by_id[planned.node_id]
            reached_at = {caller: host_for(links, caller, node) for caller in plan.node_ids}
            launch = Launch(
                job=facts.job,
                key=facts.key,
                host=_listening_on(node.host, reached_at.values()),
                model_folder=facts.model_folder,
                rank=len(states),
                first_layer=stage.first_layer,
                end_layer=stage.last_layer + 1,
                stage=stage_index,
                stage_count=len(plan.stages),
                rank_in_stage=rank_in_stage,
                ranks_in_stage=len(stage.ranks),
                epoch=epoch,
                limits=_limits(facts, plan),
                callers=tuple(filter(None, certificates)),
                controller=facts.controller,
                hops="tls" if any(len(stage.ranks) > 1 for stage in plan.stages) else facts.hops,
            )
            states.append(RankState(len(states), stage_index, rank_in_stage, planned, node, launch, reached_at))
    return states


def _limits(facts: JobFacts, plan: Plan) -> CacheLimits:
    """Those of the job, for the context that the plan found room for."""
    limits, context = facts.limits, plan.context_tokens
    if not context:
        return limits
    room = room_tokens(plan)
    kept = min(limits.prefix_tokens, max(context, room // 2))
    return msgspec.structs.replace(limits, context_tokens=context, cache_tokens=room, prefix_tokens=kept)


def room_tokens(plan: Plan) -> int:
    """Tokens that the caches of all requests together may hold: the plan's context as often as every node has room.

    Half of what the plan leaves of a node's budget is taken for that, and at most ``MOST_CONTEXTS``.
    """
    ranks = (rank for rank in plan.ranks if rank.kv_bytes)
    more = min((rank.room_bytes // 2 // rank.kv_bytes for rank in ranks), default=0)
    return plan.context_tokens * (1 + min(max(more, 0), MOST_CONTEXTS - 1))


def connect_order(state: RankState, states: Sequence[RankState]) -> Connect:
    """Whom this rank connects to, once every rank listens."""
    group = [other for other in states if other.stage == state.stage]
    world = states if state.launch.over_mlx else group
    ring = tuple(_ring_address(state, other) for other in world) if len(world) > 1 else ()
    if not state.launch.is_leader:
        return Connect(ring=ring, caller=group[0].node.certificate)
    next_stage, caller = None, ""
    if state.launch.stage_count > 1:
        leaders = [other for other in states if other.launch.is_leader]
        next_stage = leaders[(state.stage + 1) % len(leaders)].hop_address_from(state)
        caller = leaders[state.stage - 1].node.certificate  # of the first stage: the last one, which sends tokens back
    return Connect(next_stage, tuple(other.hop_address_from(state) for other in group[1:]), ring, caller)


def used_links(plan: Plan, links: Sequence[Link]) -> tuple[UsedLink, ...]:
    """The links that hidden states and tokens take from stage to stage, in the order of the stages."""
    leaders = [stage.ranks[0] for stage in plan.stages]
    used = []
    for near, far in pairwise([*leaders, leaders[0]]):
        link = link_between(links, near.node_id, far.node_id)
        if link is not None:
            address = link.address_of(far.node_id)
            used.append(
                UsedLink(near.node_name, far.node_name, link.name, address, link.rtt_seconds, link.bytes_per_second)
            )
    return tuple(used)


def host_for(links: Sequence[Link], near_id: str, far: KnownNode) -> str:
    """Where the node ``near_id`` dials ``far``."""
    link = link_between(links, near_id, far.resources.node_id)
    return link.address_of(far.resources.node_id) if link is not None else far.host


def _listening_on(host: str, reached_at: Iterable[str]) -> str:
    """Where a worker listens: on ``host`` if that is where everybody reaches it, or on every interface.

    A pipeline that is rebuilt may come by other links, and a scope is that of the machine that dials.
    """
    hosts = {host, *reached_at}
    if len(hosts) == 1 and "%" not in host:
        return host
    return "::" if any(":" in one for one in hosts) else "0.0.0.0"  # noqa: S104  a hop is closed to strangers


def _ring_address(state: RankState, other: RankState) -> Address:
    """Another rank as MLX's ring in ``state`` wants it: where it listens itself, or where it dials."""
    host = state.launch.host if other is state else other.reached_at[state.planned.node_id]
    return Address(host, other.ring_port)
