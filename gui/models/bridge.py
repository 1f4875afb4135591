"""The part of the bridge that concerns models: wishes go to :class:`ModelErrands` on the loop, outcomes are signals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gui.models.errands import ModelErrands

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from pathlib import Path

    from gui.models.fetches import Fetch
    from gui.services import Models
    from runtime.agent.models.messages import HeldModel, ModelOrder
    from runtime.cluster.catalogue import Catalogue
    from runtime.cluster.nodes import KnownNode
    from runtime.models.hub.repository import FoundModel
    from runtime.planning.values import Plan


class ModelBridge(QObject):
    """Methods of the upper block are called from the window's thread, the others on the loop.

    Signals:
        catalogue_read: :class:`runtime.cluster.catalogue.Catalogue`, as answers come in.
        search_over: ``(tuple[FoundModel, ...], trouble)``.
        described: ``(name, HeldModel or None, trouble)``: what a model on the hub is made of.
        fetches_changed: ``tuple[Fetch, ...]``.
        opened: ``(ModelOrder, folder)``: which model the window shows now.
    """

    catalogue_read = Signal(object)
    search_over = Signal(object, str)
    described = Signal(str, object, str)
    fetches_changed = Signal(object)
    opened = Signal(object, object)

    def __init__(
        self, submit: Callable[[Coroutine[object, object, None]], None], desk: Callable[[], Models], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._submit = submit
        self._desk = desk
        self._errands: ModelErrands | None = None
        self._folder: Path | None = None

    def refresh(self) -> None:
        """Look which models there are; ``catalogue_read`` follows."""
        self._does(lambda errands: errands.refresh())

    def mark(self, name: str, on: bool) -> None:
        """Make a model a favourite, or none any more."""
        self._does(lambda errands: errands.mark(name, on=on))

    def search(self, words: str) -> None:
        """Look on the hub; ``search_over`` follows."""
        self._does(lambda errands: errands.search(words))

    def describe(self, name: str) -> None:
        """Read what a model on the hub is made of; ``described`` follows."""
        self._does(lambda errands: errands.describe(name))

    def remove(self, order: ModelOrder, node_id: str) -> None:
        """Delete a model on a node."""
        self._does(lambda errands: errands.remove(order, node_id))

    def fetch_full(self, order: ModelOrder, node_id: str) -> None:
        """Have a node keep all of a model; ``fetches_changed`` tells how far it is."""

        async def begin(errands: ModelErrands) -> None:
            errands.fetch_full(order, node_id)

        self._does(begin)

    def fetch_plan(self, plan: Plan) -> None:
        """Have each node get what its layers of the model that is open need."""

        async def begin(errands: ModelErrands) -> None:
            if self._folder is not None:
                await errands.fetch_plan(self._folder, plan)

        self._does(begin)

    def pause(self, key: str) -> None:
        """Stop a fetch for now."""
        self._does(lambda errands: errands.pause(key))

    def resume(self, key: str) -> None:
        """Go on with it."""

        async def resume(errands: ModelErrands) -> None:
            errands.resume(key)

        self._does(resume)

    def give_up(self, key: str) -> None:
        """End a fetch and drop what is not whole; one that is over is only taken from view."""
        self._does(lambda errands: errands.give_up(key))

    # On the loop --------------------------------------------------------------------------------------------------

    async def set_nodes(self, nodes: tuple[KnownNode, ...]) -> None:
        """The nodes in reach are others, or where they listen."""
        errands = self._ready
        before = {(node.resources.node_id, node.host, node.port) for node in errands.nodes}
        errands.nodes = nodes
        if {(node.resources.node_id, node.host, node.port) for node in nodes} != before:
            await errands.refresh()

    async def folder(self, order: ModelOrder) -> Path:
        """From where a model can be run that is somewhere in reach, or on the hub."""
        return await self._ready.desk.folder(order, self._ready.nodes)

    async def note_opened(self, folder: Path) -> None:
        """The window shows the model in ``folder``."""
        self._folder = folder
        self.opened.emit(await self._ready.desk.order_of(folder), folder)
        await self._ready.refresh()

    async def end(self) -> None:
        """The loop is about to end."""
        if self._errands is not None:
            await self._errands.end()

    @property
    def _ready(self) -> ModelErrands:
        if self._errands is None:
            self._errands = ModelErrands(self._desk(), _Signals(self))
        return self._errands

    def _does(self, does: Callable[[ModelErrands], Awaitable[None]]) -> None:
        async def work() -> None:
            await does(self._ready)

        self._submit(work())


class _Signals:
    """Tells outcomes by a bridge's signals."""

    def __init__(self, bridge: ModelBridge) -> None:
        self._bridge = bridge

    def catalogue(self, models: Catalogue) -> None:
        self._bridge.catalogue_read.emit(models)

    def found(self, models: tuple[FoundModel, ...], trouble: str) -> None:
        self._bridge.search_over.emit(models, trouble)

    def described(self, name: str, facts: HeldModel | None, trouble: str) -> None:
        self._bridge.described.emit(name, facts, trouble)

    def fetches(self, fetches: tuple[Fetch, ...]) -> None:
        self._bridge.fetches_changed.emit(fetches)
