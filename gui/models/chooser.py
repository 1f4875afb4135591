"""Brings the wish for a model out of the window, whichever way it is chosen: page, menu or folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QMenu

from gui.models.welcome import facts_words

if TYPE_CHECKING:
    from gui.window import Window
    from runtime.agent.models.choices import ModelChoice

LOCKED = "Stop the model that runs to choose another"


class ModelChooser(QObject):
    """Keeps the list of models in the page and in the menu.

    Signals:
        model_wanted: The folder of a model, or None for the demo's.
        models_wanted: The list is about to be looked at.
    """

    model_wanted = Signal(object)
    models_wanted = Signal()

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        self._choices: tuple[ModelChoice, ...] | None = None
        self._dialog: QFileDialog | None = None
        self._locked = False
        self.menu = QMenu("Choose Model", window)
        self.menu.setToolTipsVisible(True)
        self.menu.aboutToShow.connect(self.models_wanted)
        window.welcome.chosen.connect(self.choose)
        window.welcome.folder_wanted.connect(self.open_folder)
        self.show_models(())

    @Slot(object)
    def show_models(self, choices: tuple[ModelChoice, ...]) -> None:
        """The models on this machine are known, or have changed."""
        if choices == self._choices:
            return
        self._choices = choices
        self._window.welcome.show_models(choices)
        self.menu.clear()
        for choice in choices:
            action = self._action(choice.name.replace("&", "&&"), partial(self.choose, choice.folder))
            action.setToolTip(facts_words(choice))
        if choices:
            self.menu.addSeparator()
        self._action("Open a Model Folder…", self.open_folder, "Ctrl+O")
        self._action("Demo Model", partial(self.choose, None))
        self._allow()

    def lock(self, *, locked: bool) -> None:
        """Whether a session keeps its model."""
        if locked != self._locked:
            self._locked = locked
            self._allow()

    def choose(self, folder: Path | None) -> None:
        """Want a model."""
        if not self._locked:
            self.model_wanted.emit(folder)

    def open_folder(self) -> None:
        """Look for a folder."""
        if self._locked or self._dialog is not None:
            return
        dialog = QFileDialog(self._window, "Open a Model Folder")
        dialog.setObjectName("model_folder_dialog")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self._on_folder)
        dialog.finished.connect(self._on_closed)
        self._dialog = dialog
        dialog.open()

    def _action(self, text: str, does: partial[None] | object, key: str = "") -> QAction:
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
