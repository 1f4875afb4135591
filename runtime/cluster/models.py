"""Before workers start, every node gets what its layers need: from peers that have it, else once from the hub."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

import aiohttp
import msgspec

from discovery.address import HostPort
from runtime.agent.calls import url_of
from runtime.agent.connector import Connector
from runtime.agent.models.messages import (
    FETCH_PATH,
    AnyFetchMessage,
    FetchDone,
    FetchFailed,
    FetchOrder,
    FetchProgress,
    Held,
    ModelOrder,
    PeerParts,
)
from runtime.cluster.meeting import introduce
from runtime.cluster.model_lists import ask_held
from runtime.cluster.model_shares import UNKNOWN_BYTES_PER_SECOND, Way, assign, nobody_has, sentence
from runtime.cluster.model_ways import ways_between
from runtime.errors import PomonaError
from runtime.models.hub.client import read_token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from discovery.home import Home
    from runtime.cluster.model_shares import NodeFetch
    from runtime.cluster.nodes import KnownNode
    from runtime.models.parts import Part

log = logging.getLogger(__name__)


class _Shares(NamedTuple):
    """Who gets what from whom."""

    fetches: Sequence[NodeFetch]
    going: Sequence[NodeFetch]
    """Those of nodes that want something, even if they have it."""
    ways: Mapping[tuple[str, str], Way]

    def sentences(self, parts: Mapping[str, Part]) -> list[tuple[NodeFetch, str]]:
        """For each node that lacks something, what comes from where."""
        names = {fetch.node_id: fetch.name for fetch in self.fetches}
        found = []
        for fetch in self.going:
            if fetch.givers or fetch.hub:
                its_ways = {giver: way for (reader, giver), way in self.ways.items() if reader == fetch.node_id}
                found.append((fetch, sentence(fetch, parts, names, its_ways)))
        return found


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
        self,
        nodes: Sequence[KnownNode],
        wanted: Mapping[str, Sequence[str]],
        text_on: Sequence[str] = (),
        others: Sequence[KnownNode] = (),
    ) -> dict[str, str]:
        """Have each node get its parts; returns the folder that its worker loads, by node id.

        The nodes must know each other (:func:`runtime.cluster.meeting.introduce`). ``text_on`` are the ids of nodes
        that also want the tokenizer; the first that asks the hub gets it in any case, so that the nodes together
        have all of the model. ``others`` are asked for what none of ``nodes`` has, before the hub is. Raises
        :class:`PomonaError`.
        """
        shares = await self._shares(nodes, wanted, others)
        for fetch, words in shares.sentences(self._parts):
            self._on_fetch(fetch.node, words, None)
        fetches, going, ways = shares
        text_on = [*text_on, *[fetch.node_id for fetch in going if fetch.hub][:1]]
        ordered = [*going, *(fetch for fetch in fetches if not fetch.wanted)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    fetch.node_id: group.create_task(self._fetch(fetch, ordered, ways, text_on)) for fetch in going
                }
        except* PomonaError as errors:
            raise errors.exceptions[0] from None
        return {node_id: task.result().folder for node_id, task in tasks.items()}

    async def preview(
        self, nodes: Sequence[KnownNode], wanted: Mapping[str, Sequence[str]], others: Sequence[KnownNode] = ()
    ) -> list[str]:
        """What :meth:`provide` would say of each node that lacks something; nothing is fetched."""
        shares = await self._shares(nodes, wanted, others)
        return [words for _fetch, words in shares.sentences(self._parts)]

    async def _shares(
        self, nodes: Sequence[KnownNode], wanted: Mapping[str, Sequence[str]], others: Sequence[KnownNode]
    ) -> _Shares:
        held = await self._held_by(nodes)
        if others and (lacking := nobody_has(held, wanted)):
            helpers = await self._helpers(others, lacking)
            if helpers:
                nodes = [*nodes, *(node for node, _has in helpers)]
                held |= {node.resources.node_id: has for node, has in helpers}
                await introduce(self._home, nodes)
        fetches = assign(nodes, held, wanted)
        going = [fetch for fetch in fetches if fetch.wanted]
        return _Shares(fetches, going, await self._ways(nodes, fetches, going))

    async def _held_by(self, nodes: Sequence[KnownNode]) -> dict[str, Held]:
        answers = await asyncio.gather(*map(self._held, nodes))
        return {node.resources.node_id: answer for node, answer in zip(nodes, answers, strict=True)}

    async def _helpers(self, others: Sequence[KnownNode], lacking: set[str]) -> list[tuple[KnownNode, Held]]:
        """Those that have something of it. One that does not answer is of no help, and no obstacle."""
        answers = await asyncio.gather(*map(self._held, others), return_exceptions=True)
        found = []
        for node, answer in zip(others, answers, strict=True):
            if isinstance(answer, PomonaError):
                log.info("%s", answer)
            elif isinstance(answer, BaseException):
                raise answer
            elif lacking.intersection(answer.parts):
                found.append((node, answer))
        return found

    async def _held(self, node: KnownNode) -> Held:
        return await ask_held(self._home, node, self._order_for(node))

    async def _ways(
        self, nodes: Sequence[KnownNode], fetches: Sequence[NodeFetch], going: Sequence[NodeFetch]
    ) -> dict[tuple[str, str], Way]:
        """How each node that fetches reaches those that it fetches from; small files may come from any of them."""
        pairs = {(fetch.node_id, giver) for fetch in going for giver in fetch.givers}
        ways = await ways_between(self._home, nodes, pairs)
        for fetch in going:
            for other in fetches:
                if other is not fetch:
                    ways.setdefault((fetch.node_id, other.node_id), Way(other.node.host))
        return ways

    def _order_for(self, node: KnownNode) -> ModelOrder:
        may = self._folder_on is None or node.resources.node_id in self._folder_on
        return self._order if may else msgspec.structs.replace(self._order, folder="")

    async def _fetch(
        self,
        fetch: NodeFetch,
        fetches: Sequence[NodeFetch],
        ways: Mapping[tuple[str, str], Way],
        text_on: Sequence[str],
    ) -> FetchDone:
        opener = next((other for other in fetches if other.held.has_manifest), fetches[0])
        peers = []
        for other in fetches:
            if other is fetch or not (other is opener or other.held.has_manifest or other.node_id in fetch.later):
                continue
            way = ways[fetch.node_id, other.node_id]
            peers.append(
                PeerParts(
                    other.node_id,
                    other.name,
                    way.host,
                    other.held.byte_port,
                    tuple(fetch.peers.get(other.node_id, ())),
                    tuple(fetch.later.get(other.node_id, ())),
                    way.bytes_per_second or UNKNOWN_BYTES_PER_SECOND,
                    will_open=other is opener and not other.held.has_manifest,
                )
            )
        order = FetchOrder(
            self._order_for(fetch.node),
            tuple(fetch.wanted),
            tuple(peers),
            with_text=fetch.node_id in text_on,
            use_hub=self._use_hub,
            opens=opener is fetch and not fetch.held.has_manifest,
            hub_token=(read_token(self._home.folder) or "") if self._use_hub else "",
        )
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
