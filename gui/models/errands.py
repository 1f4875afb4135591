"""What the bridge does on its event loop for models. No Qt: each outcome is told by a function."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from gui.models.fetches import Fetch, FetchState
from gui.runner import sentence
from runtime.cluster.catalogue import catalogue
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from gui.services import Models
    from runtime.agent.models.messages import FetchProgress, HeldModel, ModelOrder
    from runtime.cluster.catalogue import Catalogue, ModelPlace
    from runtime.cluster.model_fetch import OnFetch
    from runtime.cluster.nodes import KnownNode
    from runtime.models.hub.repository import FoundModel
    from runtime.planning.values import Plan

    Start = Callable[[OnFetch], Awaitable[None]]

logger = logging.getLogger(__name__)

THIS_MACHINE = "This machine"


class Told(Protocol):
    """Who hears of the outcomes."""

    def catalogue(self, models: Catalogue) -> None:
        """The models are known, or have changed."""

    def found(self, models: tuple[FoundModel, ...], trouble: str) -> None:
        """What the hub has, or why that is not known."""

    def described(self, name: str, facts: HeldModel | None, trouble: str) -> None:
        """What a model on the hub is made of, or why that is not known."""

    def fetches(self, fetches: tuple[Fetch, ...]) -> None:
        """Fetches began, went on or ended."""


class ModelErrands:
    """The models of one person, for as long as the loop runs."""

    def __init__(self, desk: Models, told: Told) -> None:
        self.desk = desk
        self._told = told
        self.nodes: tuple[KnownNode, ...] = ()
        self._places: dict[str, ModelPlace] = {}
        self._fetches: dict[str, Fetch] = {}
        self._starts: dict[str, Start] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._searching: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Ask this machine and every node what they have; each answer is told as it comes."""
        own_id = self.desk.node_id
        names = {node.resources.node_id: node.resources.name for node in self.nodes}
        present = {own_id, *names}
        self._places = {node_id: place for node_id, place in self._places.items() if node_id in present}
        self._places[own_id] = await self.desk.here(names.get(own_id, THIS_MACHINE))
        await self._tell_catalogue()
        await asyncio.gather(*(self._ask(node) for node in self.nodes if node.resources.node_id != own_id))

    async def _ask(self, node: KnownNode) -> None:
        self._places[node.resources.node_id] = await self.desk.on_node(node)
        await self._tell_catalogue()

    async def _tell_catalogue(self) -> None:
        favourites = await asyncio.to_thread(self.desk.favourites)
        self._told.catalogue(catalogue(tuple(self._places.values()), favourites))

    async def mark(self, name: str, *, on: bool) -> None:
        """Make a model a favourite, or none any more."""
        await asyncio.to_thread(self.desk.mark, name, on=on)
        await self._tell_catalogue()

    async def search(self, words: str) -> None:
        """Look on the hub; a search that still runs is given up for this one."""
        if self._searching is not None:
            self._searching.cancel()
        this = self._searching = asyncio.current_task()
        try:
            found, trouble = tuple(await self.desk.search(words)), ""
        except PomonaError as error:
            found, trouble = (), str(error)
        if this is self._searching:
            self._told.found(found, trouble)

    async def describe(self, name: str) -> None:
        """Read what a model on the hub is made of."""
        try:
            facts = await self.desk.describe(name, self.nodes)
        except PomonaError as error:
            self._told.described(name, None, str(error))
        else:
            self._told.described(name, facts, "")

    async def remove(self, order: ModelOrder, node_id: str) -> None:
        """Delete a model on a node."""
        node = self._node(node_id)
        if node is None and node_id != self.desk.node_id:
            raise PomonaError("That node is not in reach any more.")
        try:
            await self.desk.remove(order, node)
        finally:
            await self.refresh()

    def fetch_full(self, order: ModelOrder, node_id: str) -> None:
        """Have a node keep all of a model. Raises :class:`PomonaError` if it is gone."""
        node = self._node(node_id)
        if node is None:
            raise PomonaError("That node is not in reach any more.")
        key = f"full {order.repository or order.name} {order.revision} {node_id}"
        self._begin(
            Fetch(key, order, f"Full copy on {node.resources.name}"),
            lambda on_fetch: self.desk.fetch_full(order, node, self.nodes, on_fetch),
        )

    async def fetch_plan(self, folder: Path, plan: Plan) -> None:
        """Have each node get what its layers in a plan need."""
        order = await self.desk.order_of(folder)
        split = " | ".join(str(stage.layer_count) for stage in plan.stages)
        self._begin(
            Fetch(
                f"split {order.repository or order.name} {order.revision}",
                order,
                f"For the split {split}",
                for_split=True,
            ),
            lambda on_fetch: self.desk.fetch_plan(folder, plan, self.nodes, on_fetch),
        )

    def resume(self, key: str) -> None:
        """Go on with a fetch that was paused or has failed."""
        if key in self._fetches and key not in self._tasks:
            self._begin(self._fetches[key], self._starts[key])

    async def pause(self, key: str) -> None:
        """Stop a fetch; what has come stays."""
        if await self._stop(key) and key in self._fetches:
            self._put(replace(self._fetches[key], state=FetchState.PAUSED))

    async def give_up(self, key: str) -> None:
        """End a fetch, and drop what has come of layers that are not whole."""
        await self._stop(key)
        fetch = self._fetches.pop(key, None)
        self._tell_fetches()
        if fetch is not None and fetch.state is not FetchState.DONE:
            ids = {one.node_id for one in fetch.nodes}
            try:
                nodes = [node for node in self.nodes if node.resources.node_id in ids]
                await self.desk.forget_unfinished(fetch.order, nodes)
            finally:
                await self.refresh()

    async def end(self) -> None:
        """Pause everything."""
        for key in list(self._tasks):
            await self._stop(key)

    def _node(self, node_id: str) -> KnownNode | None:
        return next((node for node in self.nodes if node.resources.node_id == node_id), None)

    def _begin(self, fetch: Fetch, start: Start) -> None:
        if fetch.key in self._tasks:
            return
        self._starts[fetch.key] = start
        self._put(replace(fetch, state=FetchState.RUNNING, trouble=""))
        task = asyncio.get_running_loop().create_task(self._run(fetch.key, start), name=f"fetch {fetch.key}")
        self._tasks[fetch.key] = task
        task.add_done_callback(lambda _task: self._tasks.pop(fetch.key, None))

    async def _run(self, key: str, start: Start) -> None:
        def on_fetch(node: KnownNode, words: str, progress: FetchProgress | None) -> None:
            self._put(self._fetches[key].told(node, words, progress))

        try:
            await start(on_fetch)
        except Exception as error:
            level = logging.INFO if isinstance(error, PomonaError) else logging.ERROR
            logger.log(level, "a fetch failed: %s", error, exc_info=error)
            self._put(replace(self._fetches[key], state=FetchState.FAILED, trouble=sentence(error)))
        else:
            self._put(replace(self._fetches[key], state=FetchState.DONE))
        await self.refresh()

    async def _stop(self, key: str) -> bool:
        task = self._tasks.get(key)
        if task is None:
            return False
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return True

    def _put(self, fetch: Fetch) -> None:
        self._fetches[fetch.key] = fetch
        self._tell_fetches()

    def _tell_fetches(self) -> None:
        self._told.fetches(tuple(self._fetches.values()))
