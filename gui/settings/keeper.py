"""Keeps the preferences, opens the window of settings over the main one, and brings its wishes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from gui.preferences import Preferences
from gui.session import Phase
from gui.settings.dialog import SettingsDialog

if TYPE_CHECKING:
    from gui.appearance import Choice
    from gui.theme import Theme
    from gui.window import Window
    from runtime.cluster.model_desk import Keeping


class SettingsKeeper(QObject):
    """At most one window of settings is open.

    Signals:
        preferences_changed: ``(Preferences, running)``: they are others; whether a session runs that may follow.
        keeping_wanted: How are models kept? :meth:`show_keeping` follows.
        folder_wanted: A folder for new models, None for the usual place; :meth:`show_keeping` follows.
        token_wanted: The hub's token, empty to forget it; :meth:`show_keeping` follows.
        key_wanted: What is the API key? :meth:`show_key` follows.
        new_key_wanted: Whether a session runs that shall take it: another API key; :meth:`show_key` follows.
    """

    preferences_changed = Signal(object, bool)
    keeping_wanted = Signal()
    folder_wanted = Signal(object)
    token_wanted = Signal(str)
    key_wanted = Signal()
    new_key_wanted = Signal(bool)

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        self.preferences = Preferences()
        self.dialog: SettingsDialog | None = None
        window.appearance.theme_changed.connect(self._on_theme)
        window.appearance.chosen.connect(self._on_appearance)
        window.store.changed.connect(self._follow)

    def set_preferences(self, preferences: Preferences) -> None:
        """They are others."""
        if preferences == self.preferences:
            return
        self.preferences = preferences
        self._window.store.set_usual(preferences)
        self.preferences_changed.emit(preferences, self._runs)
        if preferences.needs_key:
            self.key_wanted.emit()

    def open(self) -> None:
        """Show the settings."""
        self.open_page("general" if self.dialog is None else "")

    def open_page(self, page: str) -> None:
        """Show one page of them; empty for the one that was shown last."""
        if self.dialog is None:
            window = self._window
            dialog = self.dialog = SettingsDialog(window.appearance.theme, window)
            dialog.show_preferences(self.preferences)
            dialog.general.show_appearance(window.appearance.choice)
            dialog.changed.connect(self.set_preferences)
            dialog.general.appearance_wanted.connect(window.appearance.choose)
            dialog.general.share_wanted.connect(window.trust.share_wanted)
            dialog.models.folder_wanted.connect(self.folder_wanted)
            dialog.models.token_wanted.connect(self.token_wanted)
            dialog.server.key_wanted.connect(self._on_new_key)
            dialog.finished.connect(self._on_closed)
            self._follow()
            self.keeping_wanted.emit()
            window.trust.sharing_wanted.emit()
            if self.preferences.needs_key:
                self.key_wanted.emit()
        if page:
            self.dialog.show_page(page)
        self.dialog.show()
        self.dialog.activateWindow()

    def close(self) -> None:
        """The window goes, and this with it."""
        if self.dialog is not None:
            self.dialog.close()

    @Slot(object, str)
    def show_keeping(self, now: Keeping, trouble: str) -> None:
        """How models are kept, and why that could not be changed."""
        if self.dialog is not None:
            self.dialog.models.show_keeping(now, trouble)

    @Slot(str, str)
    def show_key(self, key: str, trouble: str) -> None:
        """The API key, or why there is none."""
        if self.dialog is not None:
            self.dialog.server.show_key(key, trouble)

    @Slot(bool, str, str)
    def show_sharing(self, on: bool, reason: str, trouble: str) -> None:
        """Whether this machine is shared at login, why it cannot be switched, and why it could not be."""
        if self.dialog is not None:
            self.dialog.general.show_sharing(on=on, reason=reason, trouble=trouble)

    @property
    def _runs(self) -> bool:
        return self._window.store.session.phase is Phase.RUNNING

    def _follow(self) -> None:
        if self.dialog is not None:
            session = self._window.store.session
            self.dialog.server.show_serving(session.serving if self._runs else None)

    def _on_new_key(self) -> None:
        self.new_key_wanted.emit(self._runs)

    def _on_theme(self, theme: Theme) -> None:
        if self.dialog is not None:
            self.dialog.set_theme(theme)

    def _on_appearance(self, choice: Choice) -> None:
        if self.dialog is not None:
            self.dialog.general.show_appearance(choice)

    def _on_closed(self) -> None:
        if self.sender() is self.dialog:
            self.dialog = None
