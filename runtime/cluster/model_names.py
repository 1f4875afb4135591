"""From what a person calls a model to what it is made of: a folder, or a name here, on a node, or on the hub."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runtime.agent.models.library import Library, hub_cache_folder
from runtime.agent.models.messages import ModelOrder
from runtime.agent.models.peer_source import PeerPlace, PeerSource, peer_manifest
from runtime.cluster.model_lists import ask_held, models_on
from runtime.errors import PomonaError
from runtime.models.demo import demo_model_folder
from runtime.models.fetch.transfer import Transfer
from runtime.models.folder_names import folder_of
from runtime.models.hub.client import HubClient, read_token
from runtime.models.hub.repository import hub_manifest
from runtime.models.hub.source import HubSource
from runtime.models.manifest import Manifest, manifest_of
from runtime.models.models_folder import HomeStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discovery.home import Home
    from runtime.agent.models.messages import HeldModel
    from runtime.cluster.nodes import KnownNode
    from runtime.models.fetch.source import Source

DEMO = "demo"


class NamedModel(NamedTuple):
    """A model that was found."""

    manifest: Manifest
    folder: Path | None = None
    """A full copy on this machine, which is used where it is."""


class _Holder(NamedTuple):
    node: KnownNode
    model: HeldModel


def own_library(home: Home) -> Library:
    """The models of this machine, as its agent knows them too."""
    return Library(HomeStore(home.folder), hub_cache_folder())


async def find_model(
    home: Home, name: str, revision: str = "", nodes: Sequence[KnownNode] = (), library: Library | None = None
) -> NamedModel:
    """The model called ``name``: ``demo``, a folder or a file in it, a name here, on one of ``nodes`` or on the hub.

    Whatever is nearest counts, so a model that the nodes have needs no internet. ``library`` may know of more folders
    than the machine's own. Raises :class:`PomonaError`.
    """
    if name == DEMO or await asyncio.to_thread(Path(name).exists):
        folder = await asyncio.to_thread(demo_model_folder if name == DEMO else folder_of(Path(name)).absolute)
        return NamedModel(await asyncio.to_thread(manifest_of, folder), folder)
    copies = await asyncio.to_thread((library or own_library(home)).copies, name, revision)
    if copies:
        whole = next((copy for copy in copies if copy.stored is None), None)
        return NamedModel((whole or copies[0]).manifest, whole.folder if whole else None)
    if (manifest := await _on_nodes(home, name, revision, nodes)) is not None:
        return NamedModel(manifest)
    async with HubClient(token=read_token(home.folder)) as hub:
        return NamedModel(await hub_manifest(hub, name, revision or "main"))


async def session_folder(
    home: Home, name: str, revision: str = "", nodes: Sequence[KnownNode] = (), library: Library | None = None
) -> Path:
    """The folder from which a controller runs the model called ``name``.

    A full copy on this machine, or a folder of its store with the manifest and the tokenizer, which are fetched if they
    are not there; the weights go to the nodes that need them when the session starts. Raises :class:`PomonaError`.
    """
    found = await find_model(home, name, revision, nodes, library)
    if found.folder is not None:
        return found.folder
    manifest = found.manifest
    model = HomeStore(home.folder).open(manifest)
    if all(model.has_small(file.name) for file in manifest.small_files):
        return model.folder
    async with AsyncExitStack() as stack:
        sources = await sources_of(stack, home, manifest, nodes)
        await Transfer(model, [], sources, with_text=True).run()
    return model.folder


async def sources_of(stack: AsyncExitStack, home: Home, manifest: Manifest, nodes: Sequence[KnownNode]) -> list[Source]:
    """Where this very process can fetch a model from: those of ``nodes`` that have something of it, and the hub.

    They are closed with ``stack``.
    """
    holders = await _holders(home, manifest.repository or manifest.name, manifest.revision, nodes)
    peers = [await stack.enter_async_context(await _source(home, holder.node, manifest)) for holder in holders]
    if not manifest.repository:
        return [*peers]
    hub = await stack.enter_async_context(HubClient(token=read_token(home.folder)))
    return [*peers, HubSource(hub, manifest)]


async def _on_nodes(home: Home, name: str, revision: str, nodes: Sequence[KnownNode]) -> Manifest | None:
    """What a model is made of that a node has."""
    holders = await _holders(home, name, revision, nodes)
    if not holders:
        return None
    async with AsyncExitStack() as stack:
        sources = [
            await stack.enter_async_context(await _source(home, holder.node, holder.model)) for holder in holders
        ]
        manifest = await peer_manifest(sources)
    if manifest is None:
        names = " and ".join(holder.node.resources.name for holder in holders)
        raise PomonaError(f"{name} is on {names}, but what it is made of is not said; try again.")
    return manifest


async def _holders(home: Home, name: str, revision: str, nodes: Sequence[KnownNode]) -> list[_Holder]:
    """The nodes that have something of a model, all of one revision: that of which one node has the most layers."""
    found = [
        _Holder(on_node.node, model)
        for on_node in await models_on(
            home, [node for node in nodes if node.resources.node_id != home.identity.node_id]
        )
        for model in on_node.models
        if name in {model.repository, model.name} and model.revision.startswith(revision)
    ]
    most = max(found, key=lambda holder: holder.model.layers_held, default=None)
    return [holder for holder in found if most is not None and holder.model.revision == most.model.revision]


async def _source(home: Home, node: KnownNode, model: Manifest | HeldModel) -> PeerSource:
    held = await ask_held(home, node, ModelOrder(model.name, model.repository, model.revision))
    context, has = home.context_for(node.certificate), frozenset(held.parts)
    place = PeerPlace(node.resources.name, node.host, held.byte_port, context, has)
    return PeerSource(place, model.repository or model.name, model.revision)
