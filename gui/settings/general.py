"""Settings in general: appearance, what happens when a node is lost, sharing at login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox

from gui.appearance import Choice
from gui.settings.page import Page
from gui.widgets.pop_up import PopUp

if TYPE_CHECKING:
    from gui.preferences import Preferences
    from gui.theme import Theme


class GeneralPage(Page):
    """Appearance, losses, sharing.

    Signals:
        appearance_wanted: A :class:`Choice`.
        share_wanted: Whether this Mac shall be shared at each login.
    """

    appearance_wanted = Signal(object)
    share_wanted = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__("settings_general", "General")
        self.appearance = PopUp(theme)
        self.appearance.setObjectName("setting_appearance")
        self.appearance.setAccessibleName("Appearance")
        for choice in Choice:
            self.appearance.addItem(choice.value, choice.name)
        self.appearance.activated.connect(self._on_appearance)
        self.add("Appearance", self.appearance)
        self.keep_running = QCheckBox("Go on with the nodes that are left")
        self.keep_running.setObjectName("setting_keep_running")
        self.keep_running.clicked.connect(self._on_keep_running)
        self.add(
            "If a node is lost",
            self.keep_running,
            hint="The answer pauses, the layers are loaded elsewhere, and it goes on. Off, the model stops. "
            "Counts from the next Start.",
        )
        self.share = QCheckBox("Share this Mac when I log in")
        self.share.setObjectName("setting_share")
        self.share.clicked.connect(self.share_wanted)
        self._share_hint = self.add("At login", self.share, hint="Asking the system…")
        self.finish()
        self.show_sharing(on=False, reason="Asking the system")

    def show_preferences(self, preferences: Preferences) -> None:
        super().show_preferences(preferences)
        self.keep_running.setChecked(preferences.keep_running)

    def show_appearance(self, choice: Choice) -> None:
        """What was chosen, here or in the menu."""
        self.appearance.setCurrentIndex(self.appearance.findData(choice.name))

    def show_sharing(self, *, on: bool, reason: str = "", trouble: str = "") -> None:
        """Whether it is on, why it cannot be switched, and why it could not be."""
        self.share.setChecked(on)
        self.share.setEnabled(not reason)
        self.share.setToolTip(reason)
        self.share.setAccessibleDescription(reason)
        usual = "Its node is then there for your other Macs without this window."
        self.say(self._share_hint, trouble or reason or usual)

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.appearance.set_theme(theme)

    def _on_appearance(self) -> None:
        self.appearance_wanted.emit(Choice[self.appearance.currentData()])

    def _on_keep_running(self, on: bool) -> None:
        self.change(keep_running=on)
