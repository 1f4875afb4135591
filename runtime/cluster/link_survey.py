"""Has the nodes measure the links between them, one pair at a time, and only what is not known yet."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, TypeVar

import msgspec

from discovery.address import HostPort
from resources.links import LOOPBACK
from resources.rdma_verdict import Thunderbolt
from runtime.agent.calls import NoAnswer, Refused, call, new_session
from runtime.agent.link_messages import (
    INTERFACES_PATH,
    MEASURE_PATH,
    THUNDERBOLT_PATH,
    Interfaces,
    MeasuredLinks,
    MeasureLinks,
)
from runtime.cluster.link_book import LinkBook, planning_links
from runtime.cluster.links import NodePair, joined, pair_ids, why_none
from runtime.cluster.meeting import introduce
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import aiohttp

    from discovery.home import Home
    from resources.links import NetworkInterface
    from runtime.cluster.links import Link
    from runtime.cluster.nodes import KnownNode
    from runtime.planning.plan import Link as PlanLink
    from runtime.planning.values import Plan

log = logging.getLogger(__name__)

T = TypeVar("T")

_CALL_SECONDS = 60.0
"""Twelve addresses of which each takes a second; most take a small part of that."""


async def survey_links(
    home: Home, nodes: Sequence[KnownNode], *, again: bool = False, only: Collection[tuple[str, str]] | None = None
) -> tuple[NodePair, ...]:
    """What joins each two of ``nodes``; measures pairs that are not known with the interfaces that they have now.

    ``again`` measures all of them, ``only`` names the pairs that count by their ids in order. A pair that cannot be
    measured now, because a model runs there, stays as it is known. The nodes must have been introduced to each other.
    Raises :class:`OSError` if the data folder cannot be used.
    """
    book = LinkBook(home.folder)
    ordered = sorted(nodes, key=lambda node: node.resources.node_id)
    pairs = []
    async with new_session(_CALL_SECONDS) as session:
        surveyor = _Surveyor(home, session)
        interfaces = await asyncio.gather(*(surveyor.interfaces(node) for node in ordered))
        for (one, its), (other, others) in combinations(zip(ordered, interfaces, strict=True), 2):
            ids = (one.resources.node_id, other.resources.node_id)
            if only is not None and ids not in only:
                continue
            between = ((LOOPBACK,), (LOOPBACK,)) if is_here(one) and is_here(other) else (its, others)
            known = book.get(*ids)
            if again or known is None or not known.links or known.interfaces != between:
                try:
                    known = book.keep(await surveyor.measure(one, other, between))
                except _Failed as failed:
                    known = known or NodePair(ids, between, trouble=str(failed), measured=False)
            pairs.append(known)
    return tuple(pairs)


async def measured_links(home: Home, nodes: Sequence[KnownNode]) -> tuple[PlanLink, ...]:
    """The links between ``nodes`` for a plan; those that are not known yet are measured first, which takes seconds.

    What cannot be measured now stays unknown, whatever the reason: a plan has a safe guess for it.
    """
    try:
        await introduce(home, nodes)
        await survey_links(home, nodes)
    except (PomonaError, OSError) as error:
        log.info("links were not measured: %s", error)
    return planning_links(home.folder, [node.resources.node_id for node in nodes])


async def thunderbolt_of(home: Home, nodes: Sequence[KnownNode]) -> dict[str, Thunderbolt]:
    """What each node says of its Thunderbolt, by its id; nodes that do not answer are left out."""
    async with new_session(_CALL_SECONDS) as session:
        surveyor = _Surveyor(home, session)
        answers = await asyncio.gather(*(surveyor.thunderbolt(node) for node in nodes))
    return {node.resources.node_id: answer for node, answer in zip(nodes, answers, strict=True) if answer is not None}


async def links_for(home: Home, plan: Plan, nodes: Sequence[KnownNode]) -> tuple[Link, ...]:
    """The one link that each two nodes use whose ranks speak with each other; none between nodes of one machine.

    Where a model runs already nothing is measured, and a pair that was never measured has no link here. Raises
    :class:`PomonaError` if two of them do not reach each other.
    """
    if all(is_here(node) for node in nodes):
        return ()
    try:
        pairs = await survey_links(home, nodes, only=speaking_pairs(plan))
    except OSError as error:
        raise PomonaError(f"The folder {home.folder} cannot be used ({error.strerror}).") from error
    apart = next((pair for pair in pairs if pair.chosen is None and pair.measured), None)
    if apart is not None:
        raise PomonaError(apart.trouble)
    return tuple(pair.chosen for pair in pairs if pair.chosen is not None)


def speaking_pairs(plan: Plan) -> set[tuple[str, str]]:
    """The nodes of which ranks connect to each other: neighbours in the order of stages, and all of a group."""
    leaders = [stage.ranks[0].node_id for stage in plan.stages]
    pairs = [*pairwise([*leaders, leaders[0]])]
    for stage in plan.stages:
        pairs += combinations((rank.node_id for rank in stage.ranks), 2)
    return {pair_ids(one, other) for one, other in pairs if one != other}


def is_here(node: KnownNode) -> bool:
    """Whether an agent is reached by the loopback: a virtual node, or this machine's own."""
    try:
        return ipaddress.ip_address(node.host.partition("%")[0]).is_loopback
    except ValueError:  # a name that was typed
        return False


class _Surveyor:
    def __init__(self, home: Home, session: aiohttp.ClientSession) -> None:
        self._home = home
        self._session = session

    async def interfaces(self, node: KnownNode) -> tuple[NetworkInterface, ...]:
        """What a node has; nothing if it does not answer, which the measurement will then say."""
        try:
            return await self._ask("GET", node, INTERFACES_PATH, Interfaces)
        except _Failed:
            return ()

    async def thunderbolt(self, node: KnownNode) -> Thunderbolt | None:
        """What a node says; None if it does not, as an older Pomona."""
        try:
            return await self._ask("GET", node, THUNDERBOLT_PATH, Thunderbolt)
        except _Failed:
            return None

    async def measure(
        self,
        one: KnownNode,
        other: KnownNode,
        interfaces: tuple[tuple[NetworkInterface, ...], tuple[NetworkInterface, ...]],
    ) -> NodePair:
        """Both dial, one after the other. Raises :class:`_Failed`."""
        there = await self._dial(one, other, interfaces)
        back = await self._dial(other, one, interfaces[::-1])
        node_ids = (one.resources.node_id, other.resources.node_id)
        links = joined(node_ids, interfaces, there, back)
        names = (one.resources.name, other.resources.name)
        return NodePair(node_ids, interfaces, links, trouble="" if links else why_none(names, there, back))

    async def _dial(
        self,
        near: KnownNode,
        far: KnownNode,
        interfaces: tuple[tuple[NetworkInterface, ...], tuple[NetworkInterface, ...]],
    ) -> MeasuredLinks:
        wanted = MeasureLinks(far.resources.node_id, far.port, *interfaces)
        return await self._ask("POST", near, MEASURE_PATH, MeasuredLinks, msgspec.json.encode(wanted))

    async def _ask(self, method: str, node: KnownNode, path: str, kind: type[T], body: bytes | None = None) -> T:
        context = self._home.context_for(node.certificate)
        try:
            answer = await call(self._session, method, HostPort(node.host, node.port), path, context, body)
            return msgspec.json.decode(answer, type=kind)
        except Refused as refused:
            raise _Failed(f"{node.resources.name} cannot measure its links now: {refused.reason}") from refused
        except (NoAnswer, ValueError, RecursionError) as error:
            raise _Failed(f"{node.resources.name} did not measure its links; try again.") from error


class _Failed(Exception):
    """One sentence for a person."""
