"""Brings the wish for a model out of the window, whichever way it is chosen: page, menu, pane, folder or file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QMenu

from gui.models.view import LOCKED
from gui.models.words import facts_words, short_facts_words, where_words
from runtime.agent.models.messages import ModelOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gui.window import Window
    from runtime.cluster.catalogue import Catalogue, Listing

_SHOWN_IN_MENU = 12


class ModelChooser(QObject):
    """Keeps the models in the page and in the menu.

    Signals:
        model_wanted: A :class:`ModelOrder`, the folder or a file of a model, or None for the demo's.
        models_wanted: The list is about to be looked at.
    """

    model_wanted = Signal(object)
    models_wanted = Signal()

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        self._listings: tuple[Listing, ...] = ()
        self._words: Sequence[tuple[object, ...]] = ()
        """What is said of them: while that stays, page and menu are left alone under the person's hands."""
        self._dialog: QFileDialog | None = None
        self._locked = False
        self.menu = QMenu("Choose Model", window)
        self.menu.setToolTipsVisible(True)
        self.menu.aboutToShow.connect(self.models_wanted)
        window.welcome.chosen.connect(self.choose)
        window.welcome.folder_wanted.connect(self.open_folder)
        window.welcome.all_wanted.connect(self.show_all)
        self._fill()

    @Slot(object)
    def show_models(self, catalogue: Catalogue) -> None:
        """The models in reach are known, or have changed."""
        self._listings = tuple(one for one in catalogue.listings if one.facts is not None)
        words = [(one.key, one.is_favourite, short_facts_words(one)) for one in self._listings]
        if words != self._words:
            self._words = words
            self._window.welcome.show_models(self._listings)
            self._fill()

    def _fill(self) -> None:
        self.menu.clear()
        for listing in self._listings[:_SHOWN_IN_MENU]:
            order = ModelOrder(listing.name, listing.repository, listing.revision)
            action = self._action(listing.name.replace("&", "&&"), partial(self.choose, order))
            if listing.facts is not None:
                action.setToolTip(f"{facts_words(listing.facts)} · {where_words(listing)}")
        if self._listings:
            self.menu.addSeparator()
        self._action("Open a Model Folder…", self.open_folder, "Ctrl+O")
        self._action("Open a Model File…", self.open_file, "Ctrl+Shift+O")
        self._action("Demo Model", partial(self.choose, None))
        self._allow()
        self.menu.addSeparator()
        self._action("All Models and Search…", self.show_all, "Ctrl+Shift+M")

    def lock(self, *, locked: bool) -> None:
        """Whether a session keeps its model."""
        if locked != self._locked:
            self._locked = locked
            self._fill()

    def choose(self, wanted: ModelOrder | Path | None) -> None:
        """Want a model."""
        if not self._locked:
            self.model_wanted.emit(wanted)

    def show_all(self) -> None:
        """Show the pane about models."""
        self.models_wanted.emit()
        self._window.show_pane("models")

    def open_folder(self) -> None:
        """Look for a folder."""
        self._open_dialog("Open a Model Folder", "model_folder_dialog", QFileDialog.FileMode.Directory)

    def open_file(self) -> None:
        """Look for a file of a model, whose folder then opens."""
        self._open_dialog("Open a Model File", "model_file_dialog", QFileDialog.FileMode.ExistingFile)

    def _open_dialog(self, title: str, name: str, mode: QFileDialog.FileMode) -> None:
        if self._locked or self._dialog is not None:
            return
        dialog = QFileDialog(self._window, title)
        dialog.setObjectName(name)
        dialog.setFileMode(mode)
        if mode is QFileDialog.FileMode.Directory:
            dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        else:
            dialog.setNameFilters(
                ["Files of a model (config.json tokenizer.json *.safetensors *.json)", "All files (*)"]
            )
        dialog.fileSelected.connect(self._on_folder)
        dialog.finished.connect(self._on_closed)
        self._dialog = dialog
        dialog.open()

    def _action(self, text: str, does: Callable[[], object], key: str = "") -> QAction:
        action = QAction(text, self.menu)
        action.setMenuRole(QAction.MenuRole.NoRole)
        action.setShortcut(key)
        action.triggered.connect(does)
        self.menu.addAction(action)
        return action

    def _allow(self) -> None:
        for action in self.menu.actions():
            action.setEnabled(not self._locked)
            if self._locked:
                action.setToolTip(LOCKED)

    @Slot(str)
    def _on_folder(self, path: str) -> None:
        self.choose(Path(path))

    @Slot()
    def _on_closed(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None
