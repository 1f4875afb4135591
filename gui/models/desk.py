"""Keeps the pane about models in step with the window, and hands its wishes on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from gui.models.view import Surroundings

if TYPE_CHECKING:
    from pathlib import Path

    from gui.models.fetches import Fetch
    from gui.window import Window
    from runtime.agent.models.messages import ModelOrder


class ModelsDesk(QObject):
    """Between the pane and the rest of the window.

    Signals:
        fetch_wanted: A :class:`runtime.planning.plan.Plan`: each node shall get what it needs for that.
    """

    fetch_wanted = Signal(object)

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        self._pane = window.models_pane
        window.store.changed.connect(self._follow)
        window.deck.shown.connect(self._on_shown)
        self._pane.open_wanted.connect(window.models.choose)
        self._pane.folder_wanted.connect(window.models.open_folder)
        self._pane.file_wanted.connect(window.models.open_file)
        self._pane.split_wanted.connect(self._on_split)
        self._follow()

    @Slot(object)
    def show_fetches(self, fetches: tuple[Fetch, ...]) -> None:
        """Fetches began, went on or ended."""
        self._put(replace(self._pane.surroundings, fetches=fetches))

    @Slot(object, object)
    def show_opened(self, order: ModelOrder, _folder: Path) -> None:
        """The window shows this model now."""
        self._put(replace(self._pane.surroundings, opened=order))

    def _follow(self) -> None:
        store = self._window.store
        plan = store.preview.plan if store.preview is not None else None
        refused = (store.preview.refusal if store.preview is not None else None) or "No node is in reach"
        before = self._pane.surroundings
        nodes = store.nodes
        if [node.resources.node_id for node in nodes] == [node.resources.node_id for node in before.nodes]:
            nodes = before.nodes  # what they measure of themselves each second is of no matter here
        self._put(
            Surroundings(
                nodes,
                before.opened,
                store.session.active,
                None if plan is not None else refused,
                before.fetches,
            )
        )

    def _put(self, around: Surroundings) -> None:
        self._pane.show_surroundings(around)

    def _on_split(self) -> None:
        preview = self._window.store.preview
        if preview is not None and preview.plan is not None:
            self.fetch_wanted.emit(preview.plan)

    def _on_shown(self, name: str) -> None:
        if name == "models":
            self._window.models.models_wanted.emit()
