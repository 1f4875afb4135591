"""Restores a window from what was remembered, and remembers it: soon after something changed, and at the end."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QByteArray, QObject, QTimer, Slot

from gui.appearance import Choice
from gui.chat.book import ChatBook
from gui.memory import Kept, is_empty, load, save

if TYPE_CHECKING:
    from gui.window import Window

logger = logging.getLogger(__name__)

_SOON_MS = 400


class Keeper(QObject):
    """Between a window and its file in ``folder``."""

    def __init__(self, window: Window, folder: Path) -> None:
        super().__init__(window)
        self._window = window
        self._folder = folder
        self.first_time = is_empty(folder)
        try:
            self._kept = load(folder)
        except OSError as error:
            self._complain(error)
            self._kept = Kept()
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_SOON_MS)
        self._soon.timeout.connect(self.save)
        window.chat.kept.connect(self._soon.start)
        window.settings.preferences_changed.connect(self._soon.start)
        window.closed.connect(self.save)
        window.session_wanted.connect(self._soon.start)

    def restore(self) -> Path | None:
        """Bring the window back; returns the folder of the model that it had, if that is still there."""
        window, kept = self._window, self._kept
        if kept.geometry:
            window.restoreGeometry(QByteArray(kept.geometry))
        if kept.panes:
            window.panes.restoreState(QByteArray(kept.panes))
        if kept.pane in window.deck.titles:
            window.deck.show_pane(kept.pane)
        if kept.appearance in Choice.__members__:
            window.appearance.choose(Choice[kept.appearance])
        window.settings.set_preferences(kept.preferences)
        window.store.kept_splits.update(kept.splits)
        if kept.chats:
            book = ChatBook(kept.chats)
            book.show(min(max(kept.chat, 0), len(kept.chats) - 1))
            window.chat.show_book(book)
        return _folder(kept.model_folder)

    @Slot()
    def save(self) -> None:
        """Write it now."""
        window = self._window
        window.store.keep_split()
        self._kept = msgspec.structs.replace(
            self._kept,
            appearance=window.appearance.choice.name,
            geometry=window.saveGeometry().data(),
            panes=window.panes.saveState().data(),
            pane=window.deck.current,
            splits=dict(window.store.kept_splits),
            chats=tuple(one for one in window.chat.book.conversations if one.exchanges),
            chat=window.chat.book.place,
            preferences=window.settings.preferences,
        )
        try:
            save(self._folder, self._kept)
        except OSError as error:
            self._complain(error)

    @Slot(str)
    def keep_model(self, folder: str) -> None:
        """This model is shown now."""
        self._kept = msgspec.structs.replace(self._kept, model_folder=folder)
        self._soon.start()

    def _complain(self, error: OSError) -> None:
        logger.error("the window's memory: %s", error)
        self._window.show_trouble(f"The folder {self._folder} cannot be used ({error.strerror}).")


def _folder(path: str) -> Path | None:
    """The folder, if there is one."""
    try:
        return Path(path) if path and Path(path).is_dir() else None
    except OSError:  # no path at all, such as one with too long a name
        return None
