"""What a person does with models, over one data folder: the window and the commands both do it here."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.agent.folder import open_home
from runtime.agent.models.inventory import described
from runtime.agent.models.messages import ModelOrder
from runtime.cluster.model_fetch import NodesFetch
from runtime.cluster.model_lists import forget_unfinished_on, models_on, remove_on
from runtime.cluster.model_names import find_model, own_library, session_folder
from runtime.cluster.model_places import own_place, place_of
from runtime.cluster.model_shares import wanted_by
from runtime.errors import PomonaError
from runtime.models.favourites import Favourites
from runtime.models.hub.client import TOKEN_FILE, HubClient, keep_token, read_token, token_source
from runtime.models.hub.repository import search_hub
from runtime.models.models_folder import choose_folder, chosen_folder, models_folder
from runtime.models.parts import model_parts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runtime.agent.models.messages import HeldModel
    from runtime.cluster.catalogue import ModelPlace
    from runtime.cluster.model_fetch import OnFetch
    from runtime.cluster.nodes import KnownNode
    from runtime.models.hub.repository import FoundModel
    from runtime.planning.values import Plan

_FORGET_ATTEMPTS = 25
_FORGET_PAUSE_SECONDS = 0.2
"""A node that was told to stop fetching needs a moment to let go of the model."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How models are kept on this machine."""

    folder: Path
    """Where new ones go."""
    is_usual: bool
    disk_free_bytes: int
    token_source: str
    """Where the hub's token is from; empty without one."""
    token_is_ours: bool
    """Whether Pomona keeps one, which can be forgotten."""


class ModelDesk:
    """The models of one person. Whatever fails raises :class:`PomonaError` with a sentence."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._home = open_home(folder)
        self._library = own_library(self._home)

    @property
    def node_id(self) -> str:
        """This machine's."""
        return self._home.identity.node_id

    async def here(self, name: str) -> ModelPlace:
        """What this machine has, which is called ``name``."""
        return await asyncio.to_thread(own_place, self._home, name, self._library)

    async def on_node(self, node: KnownNode) -> ModelPlace:
        """What a node has; if it does not say, why."""
        (found,) = await models_on(self._home, [node])
        return place_of(found)

    def favourites(self) -> tuple[str, ...]:
        """The names of models that are marked."""
        return Favourites(self._folder).all()

    def mark(self, name: str, *, on: bool) -> None:
        """Make a model a favourite, or none any more."""
        favourites = Favourites(self._folder)
        if on:
            favourites.add(name)
        else:
            favourites.remove(name)

    async def search(self, words: str) -> list[FoundModel]:
        """Models in MLX format on the hub."""
        async with HubClient(token=read_token(self._folder)) as hub:
            return await search_hub(hub, words)

    async def describe(self, name: str, nodes: Sequence[KnownNode]) -> HeldModel:
        """What a model is made of, wherever it is; of one on the hub kilobytes are read."""
        found = await find_model(self._home, name, nodes=nodes, library=self._library)
        return await asyncio.to_thread(described, found.manifest)

    async def folder(self, order: ModelOrder, nodes: Sequence[KnownNode]) -> Path:
        """From where it can be run: what is not here of it are weights, which go to the nodes."""
        return await session_folder(self._home, order.repository or order.name, order.revision, nodes, self._library)

    async def order_of(self, folder: Path) -> ModelOrder:
        """Which model is in a folder, which from now on is among those of this machine wherever it lies."""
        manifest = await asyncio.to_thread(self._library.add_folder, folder)
        return ModelOrder(manifest.name, manifest.repository, manifest.revision)

    async def remove(self, order: ModelOrder, node: KnownNode | None = None) -> int:
        """Delete a model from a node's store, None for this machine's; returns the bytes that are free again.

        Folders that are not Pomona's stay.
        """
        if node is not None:
            return await remove_on(self._home, node, order)
        return await asyncio.to_thread(self._remove_here, order)

    def _remove_here(self, order: ModelOrder) -> int:
        store, name = self._library.store, order.repository or order.name
        stored = store.find(name, order.revision)
        if stored is None:
            raise PomonaError(f"{name} is not in Pomona's store on this machine; `pomona models` lists what is.")
        return store.remove(stored)

    async def fetch_full(
        self, order: ModelOrder, node: KnownNode, in_reach: Sequence[KnownNode], on_fetch: OnFetch
    ) -> None:
        """Have a node keep all of a model. Cancelling it pauses; what has come stays."""
        name = order.repository or order.name
        found = await find_model(self._home, name, order.revision, in_reach, self._library)
        parts = await asyncio.to_thread(model_parts, found.manifest)
        wanted = {node.resources.node_id: sorted(parts)}
        await NodesFetch(self._home, found, parts, wanted, in_reach, on_fetch, with_text=True).run()

    async def fetch_plan(self, folder: Path, plan: Plan, in_reach: Sequence[KnownNode], on_fetch: OnFetch) -> None:
        """Have each node get what its layers in a plan need, of the model in ``folder``. Cancelling it pauses."""
        found = await find_model(self._home, str(folder), nodes=in_reach)
        parts = await asyncio.to_thread(model_parts, found.manifest)
        await NodesFetch(self._home, found, parts, wanted_by(plan, parts), in_reach, on_fetch).run()

    async def forget_unfinished(self, order: ModelOrder, nodes: Sequence[KnownNode]) -> None:
        """Give up on ``nodes`` what a fetch that was ended has left half done; whole layers stay."""
        for node in nodes:
            await self._forget_on(node, order)

    async def _forget_on(self, node: KnownNode, order: ModelOrder) -> None:
        for attempt in range(_FORGET_ATTEMPTS):
            try:
                await forget_unfinished_on(self._home, node, order)
            except PomonaError:
                if attempt + 1 == _FORGET_ATTEMPTS:
                    raise
                await asyncio.sleep(_FORGET_PAUSE_SECONDS)
            else:
                return

    def keep_token(self, token: str) -> None:
        """Keep the hub's token for this person alone, or forget it if it is empty."""
        keep_token(self._folder, token.strip())

    def keeping(self) -> Keeping:
        """How models are kept on this machine now."""
        folder = models_folder(self._folder)
        there = next((path for path in (folder, *folder.parents) if path.is_dir()), self._folder)
        return Keeping(
            folder,
            chosen_folder(self._folder) is None,
            shutil.disk_usage(there).free,
            token_source(self._folder),
            (self._folder / TOKEN_FILE).is_file(),
        )

    def choose_folder(self, folder: Path | None) -> None:
        """Keep models that come from now on there, None for the usual place."""
        choose_folder(self._folder, folder)
