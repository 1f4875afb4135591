"""Before workers start, every node gets what its layers need: from peers that have it, else once from the hub."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aiohttp
import msgspec

from discovery.address import HostPort
from runtime.agent.calls import NoAnswer, Refused, call, new_session, url_of
from runtime.agent.connector import Connector
from runtime.agent.models.messages import (
    FETCH_PATH,
    HELD_PATH,
    AnyFetchMessage,
    FetchDone,
    FetchFailed,
    FetchOrder,
    FetchProgress,
    Held,
    ModelOrder,
    PeerParts,
)
from runtime.errors import PomonaError
from runtime.models.parts import stage_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode
    from runtime.models.parts import Part
    from runtime.planning.plan import Plan

_ASK_SECONDS = 30.0
_DEFAULT_BYTES_PER_SECOND = 100e6
_HUB = "the hub"


@dataclass(slots=True)
class NodeFetch:
    """What one node has, wants and gets."""

    node: KnownNode
    held: Held
    wanted: list[str]
    peers: dict[str, list[str]] = field(default_factory=dict)
    """Parts that it gets from each node, by that node's id."""
    later: dict[str, list[str]] = field(default_factory=dict)
    """The same of parts that the other node has to fetch first."""
    hub: list[str] = field(default_factory=list)
    """Parts that no node has, for which this one asks the hub."""

    @property
    def name(self) -> str:
        return self.node.resources.name


def wanted_by(plan: Plan, parts: Mapping[str, Part]) -> dict[str, list[str]]:
    """The parts that each node of a plan needs. Pure."""
    wanted: dict[str, list[str]] = {}
    for stage in plan.stages:
        for rank in stage.ranks:
            names = stage_parts(parts, stage.first_layer, stage.last_layer + 1)
            wanted[rank.node_id] = sorted({*wanted.get(rank.node_id, ()), *names})
    return wanted


def assign(nodes: Sequence[KnownNode], held: Mapping[str, Held], wanted: Mapping[str, list[str]]) -> list[NodeFetch]:
    """Who gets what from whom: each part from all nodes that have it; else one asks the hub, and others ask it. Pure.

    The hub's share goes to whoever has the least of it so far.
    """
    fetches = {
        node.resources.node_id: NodeFetch(node, held[node.resources.node_id], wanted.get(node.resources.node_id, []))
        for node in nodes
    }
    askers: dict[str, str] = {}
    for part in sorted({part for names in wanted.values() for part in names}):
        holders = [node_id for node_id, fetch in fetches.items() if part in fetch.held.parts]
        seekers = [node_id for node_id, fetch in fetches.items() if part in fetch.wanted and node_id not in holders]
        if not seekers:
            continue
        if not holders:
            askers[part] = min(seekers, key=lambda node_id: len(fetches[node_id].hub))
            fetches[askers[part]].hub.append(part)
        for seeker in seekers:
            for holder in holders:
                fetches[seeker].peers.setdefault(holder, []).append(part)
            if not holders and seeker != askers[part]:
                fetches[seeker].later.setdefault(askers[part], []).append(part)
    return list(fetches.values())


def sentence(fetch: NodeFetch, parts: Mapping[str, Part], names: Mapping[str, str]) -> str:
    """One line before anything moves: ``has 14 of 18 layers; 3.1 GB from Studio (40 s); 0.9 GB from the hub``."""
    layers = [part for part in fetch.wanted if part.startswith("layer-")]
    has = sum(part in fetch.held.parts for part in layers)
    words = [f"{fetch.name}: has {has} of {len(layers)} layers"]
    seen: set[str] = set()
    for source, its in (*fetch.peers.items(), *fetch.later.items()):
        size = sum(parts[part].byte_count for part in its if part not in seen)
        seen.update(its)
        if size:
            words.append(f"{_size(size)} from {names[source]} ({size / _DEFAULT_BYTES_PER_SECOND:.0f} s)")
    if fetch.hub:
        words.append(f"{_size(sum(parts[part].byte_count for part in fetch.hub))} from {_HUB}")
    return "; ".join(words)


class ModelProvider:
    """Provides one model to nodes; ``on_fetch`` gets a line about a node for people, then numbers."""

    def __init__(
        self,
        home: Home,
        order: ModelOrder,
        parts: Mapping[str, Part],
        on_fetch: Callable[[KnownNode, str, FetchProgress | None], None],
        *,
        folder_on: Sequence[str] | None = None,
        use_hub: bool = True,
    ) -> None:
        """``folder_on`` are the nodes that may use the order's folder in place, None all that see it."""
        self._home = home
        self._order = order
        self._parts = parts
        self._on_fetch = on_fetch
        self._folder_on = folder_on
        self._use_hub = use_hub

    async def provide(
        self, nodes: Sequence[KnownNode], wanted: Mapping[str, list[str]], text_on: Sequence[str] = ()
    ) -> dict[str, str]:
        """Have each node get its parts; returns the folder that its worker loads, by node id.

        The nodes must know each other (:func:`runtime.cluster.meeting.introduce`). ``text_on`` are the ids of nodes
        that also want the tokenizer. Raises :class:`PomonaError`.
        """
        async with new_session(_ASK_SECONDS) as session:
            answers = await asyncio.gather(*(self._held(session, node) for node in nodes))
        held = {node.resources.node_id: answer for node, answer in zip(nodes, answers, strict=True)}
        fetches = assign(nodes, held, wanted)
        names = {node.resources.node_id: node.resources.name for node in nodes}
        folders: dict[str, str] = {}
        open_fetches: list[NodeFetch] = []
        for fetch in fetches:
            node_id = fetch.node.resources.node_id
            if fetch.peers or fetch.later or fetch.hub or node_id in text_on:
                self._on_fetch(fetch.node, sentence(fetch, self._parts, names), None)
                open_fetches.append(fetch)
            elif fetch.wanted:
                folders[node_id] = fetch.held.folder
        rest = [fetch for fetch in fetches if fetch not in open_fetches]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    fetch.node.resources.node_id: group.create_task(self._fetch(fetch, open_fetches + rest, text_on))
                    for fetch in open_fetches
                }
        except* PomonaError as errors:
            raise errors.exceptions[0] from None
        return folders | {node_id: task.result().folder for node_id, task in tasks.items()}

    async def _held(self, session: aiohttp.ClientSession, node: KnownNode) -> Held:
        context = self._home.context_for(node.certificate)
        place = HostPort(node.host, node.port)
        try:
            body = await call(session, "POST", place, HELD_PATH, context, msgspec.json.encode(self._order_for(node)))
            return msgspec.json.decode(body, type=Held)
        except (NoAnswer, Refused, msgspec.DecodeError) as error:
            raise PomonaError(f"{node.resources.name} does not say what it has of the model ({error}).") from error

    def _order_for(self, node: KnownNode) -> ModelOrder:
        may = self._folder_on is None or node.resources.node_id in self._folder_on
        return self._order if may else msgspec.structs.replace(self._order, folder="")

    async def _fetch(self, fetch: NodeFetch, all_fetches: Sequence[NodeFetch], text_on: Sequence[str]) -> FetchDone:
        opener = next((other for other in all_fetches if other.held.folder), all_fetches[0])
        peers = tuple(
            PeerParts(
                other.node.resources.node_id,
                other.name,
                other.node.host,
                other.held.byte_port,
                tuple(fetch.peers.get(other.node.resources.node_id, ())),
                tuple(fetch.later.get(other.node.resources.node_id, ())),
                _DEFAULT_BYTES_PER_SECOND,
                will_open=other is opener,
            )
            for other in all_fetches
            if other is not fetch
            and (other is opener or other.held.folder or other.node.resources.node_id in fetch.later)
        )
        with_text = fetch.node.resources.node_id in text_on
        order = FetchOrder(self._order_for(fetch.node), tuple(fetch.wanted), peers, with_text, self._use_hub)
        try:
            return await self._ordered(fetch.node, order)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise PomonaError(f"The connection to {fetch.name} was lost while it fetched the model.") from error

    async def _ordered(self, node: KnownNode, order: FetchOrder) -> FetchDone:
        url = url_of("https", HostPort(node.host, node.port), FETCH_PATH)
        async with (
            aiohttp.ClientSession(connector=Connector()) as session,
            session.ws_connect(url, ssl=self._home.context_for(node.certificate), heartbeat=10.0) as socket,
        ):
            await socket.send_str(msgspec.json.encode(order).decode())
            async for frame in socket:
                message = msgspec.json.decode(frame.data, type=AnyFetchMessage)
                match message:
                    case FetchProgress():
                        self._on_fetch(node, "", message)
                    case FetchDone():
                        return message
                    case FetchFailed(reason):
                        raise PomonaError(f"{node.resources.name}: {reason}")
        raise PomonaError(f"{node.resources.name} is gone: what it has fetched stays, so start again.")


def _size(byte_count: int) -> str:
    return f"{byte_count / 1e9:.1f} GB" if byte_count >= 1e8 else f"{byte_count / 1e6:.1f} MB"
