"""Obeys an order: has the parts of a model on this node, from wherever they are nearest."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.agent.models.library import parts_held
from runtime.agent.models.local_source import LocalSource
from runtime.agent.models.messages import FetchDone, Held
from runtime.agent.models.peer_source import PeerPlace, PeerSource, peer_manifest
from runtime.errors import PomonaError
from runtime.models.fetch.transfer import Transfer
from runtime.models.half_scales import agrees, convert, converted_manifest, runs_halves_badly
from runtime.models.hub.client import HubClient, read_token
from runtime.models.hub.repository import hub_manifest
from runtime.models.hub.source import HubSource
from runtime.models.manifest import WORKER_FILES
from runtime.models.parts import model_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from discovery.home import Home
    from runtime.agent.models.library import Copy, Library
    from runtime.agent.models.messages import FetchOrder, ModelOrder, PeerParts
    from runtime.models.fetch.source import Source
    from runtime.models.manifest import Manifest


class Fetching:
    """One node's. Blocking work is done in threads."""

    def __init__(self, home: Home, library: Library) -> None:
        self._home = home
        self._library = library

    def held(self, order: ModelOrder, byte_port: int) -> Held:
        """What is here of a model."""
        copies = self._copies(order)
        own = self._own_manifest(copies[0].manifest) if copies else None
        converted: list[str] = []
        if own is not None and (model := self._library.store.find(own.name, own.revision)) is not None:
            converted = model.held(model.parts().values())
        return Held(byte_port, tuple(parts_held(copies)), bool(copies), tuple(converted), self._converts())

    async def fetch(self, order: FetchOrder, on_start: Callable[[Transfer], None]) -> FetchDone:
        """Have what is wanted; ``on_start`` gets the transfer if there has to be one. Raises :class:`PomonaError`."""
        copies = await asyncio.to_thread(self._copies, order.model)
        ready = await asyncio.to_thread(self._ready_folder, copies, order)
        if ready is not None:
            return FetchDone(str(ready), {})
        async with AsyncExitStack() as stack:
            peers = [await stack.enter_async_context(self._peer(order, place)) for place in order.peers]
            token = read_token(self._home.folder) or order.hub_token or None
            hub = await stack.enter_async_context(HubClient(token=token))
            manifest = await self._manifest(order, copies, peers, hub)
            sources: list[Source] = [LocalSource([copy for copy in copies if copy.stored is None]), *peers]
            if order.use_hub and manifest.repository:
                sources.append(HubSource(hub, manifest))
            return await self._transfer(manifest, order, sources, on_start)

    async def _transfer(
        self, manifest: Manifest, order: FetchOrder, sources: Sequence[Source], on_start: Callable[[Transfer], None]
    ) -> FetchDone:
        store = self._library.store
        model = store.open(manifest)
        if unknown := sorted(set(order.parts) - model.parts().keys()):
            raise PomonaError(f"{manifest.name} has no {unknown[0]}; make a new plan.")
        own_manifest = await asyncio.to_thread(self._own_manifest, manifest)
        names = list(order.parts)
        if own_manifest is not None:
            own = store.open(own_manifest)
            there = set(own.held(own.parts().values()))
            names = [name for name in names if name not in there]
        with self._library.fetching(manifest.revision, names):
            transfer = Transfer(model, names, sources, with_text=order.with_text, is_first=order.opens)
            on_start(transfer)
            progress = await transfer.run()
        if own_manifest is not None:
            model = await asyncio.to_thread(convert, store, model, own_manifest, names)
        return FetchDone(str(model.folder), progress.from_source)

    def _ready_folder(self, copies: Sequence[Copy], order: FetchOrder) -> Path | None:
        """That of a copy which has all that is wanted, in the form in which this node wants it."""
        own = self._own_manifest(copies[0].manifest) if copies else None
        if own is not None:
            copies = self._library.copies(own.name, own.revision)
        for copy in copies:
            parts = model_parts(copy.manifest)
            small = [file.name for file in copy.manifest.small_files if order.with_text or file.name in WORKER_FILES]
            if all(name in parts and copy.reader.holds(parts[name]) for name in order.parts) and all(
                (copy.folder / name).is_file() for name in small
            ):
                return copy.folder
        return None

    async def _manifest(
        self, order: FetchOrder, copies: Sequence[Copy], peers: Sequence[PeerSource], hub: HubClient
    ) -> Manifest:
        if copies:
            return copies[0].manifest
        if not order.opens and (manifest := await peer_manifest(peers)) is not None:
            return manifest
        if order.use_hub and order.model.repository:
            return await hub_manifest(hub, order.model.repository, order.model.revision)
        raise PomonaError(f"No node in reach has {order.model.name}, and it is on no hub.")

    def _peer(self, order: FetchOrder, place: PeerParts) -> PeerSource:
        certificate = self._home.certificate_of(place.node_id)
        if certificate is None:
            raise PomonaError(f"{place.name} is not known to this node; pair it again.")
        context = self._home.context_for(certificate)
        where = PeerPlace(
            place.name,
            place.host,
            place.port,
            context,
            frozenset(place.has),
            frozenset(place.will_have),
            place.will_open,
            max(place.bytes_per_second, 1.0),
        )
        return PeerSource(where, order.model.repository or order.model.name, order.model.revision)

    def _copies(self, order: ModelOrder) -> list[Copy]:
        if order.folder and (Path(order.folder) / "config.json").is_file():
            with contextlib.suppress(PomonaError):  # not a model that can be used in place
                self._library.add_folder(Path(order.folder))
        return self._library.copies(order.repository or order.name, order.revision)

    def _converts(self) -> bool:
        return runs_halves_badly() and agrees(self._home.folder)

    def _own_manifest(self, manifest: Manifest) -> Manifest | None:
        """What this node keeps instead of the model itself, if it does."""
        return converted_manifest(manifest) if self._converts() else None
