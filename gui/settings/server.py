"""Settings about the API of a model that runs: who reaches it, where, and with which key."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QSpinBox

from gui.settings.page import Page, button
from gui.widgets.labels import ElidedLabel, set_ink
from gui.widgets.pop_up import PopUp
from runtime.server.options import DEFAULT_API_PORT

if TYPE_CHECKING:
    from gui.preferences import Preferences, Reach
    from gui.theme import Theme
    from runtime.cluster.messages import Serving

_REACHES = {"loopback": "Programs on this Mac", "network": "Anyone on the network with the key"}


class ServerPage(Page):
    """Who reaches the API of a model that runs, and where.

    Signals:
        key_wanted: Another key shall be made.
    """

    key_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__("settings_server", "Server")
        self._key = ""
        self.reach = PopUp(theme)
        self.reach.setObjectName("setting_reach")
        self.reach.setAccessibleName("Who can reach the model")
        for name, words in _REACHES.items():
            self.reach.addItem(words, name)
        self.reach.activated.connect(self._on_reach)
        self._reach_hint = self.add("Who can ask", self.reach, hint=" ")
        self.port = QSpinBox()
        self.port.setObjectName("setting_port")
        self.port.setAccessibleName("Port")
        self.port.setRange(1024, 65535)
        self.port.setGroupSeparatorShown(False)
        self.port.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.port.setMinimumWidth(72)
        self.port.setKeyboardTracking(False)
        self.port.editingFinished.connect(self._on_port)
        self.add(
            "Port",
            self.port,
            hint=f"If {DEFAULT_API_PORT} is taken, another one is used. Any other that is set here counts, or Start "
            "says that it is taken.",
        )
        self.wants_key = QCheckBox("Programs have to show the key")
        self.wants_key.setObjectName("setting_wants_key")
        self.wants_key.clicked.connect(self._on_wants_key)
        self.copy = button("Copy Key", "copy_api_key")
        self.copy.clicked.connect(self._on_copy)
        self.renew = button("New Key", "renew_api_key")
        self.renew.clicked.connect(self.key_wanted)
        self._key_hint = self.add("API key", self.wants_key, self.copy, self.renew, hint=" ")
        self.address = ElidedLabel("setting_address", 13)
        self._address_hint = self.add("Now", self.address, hint=" ", stretch=True)
        self.finish()
        self.show_serving(None)
        self.show_key("", "")

    def show_preferences(self, preferences: Preferences) -> None:
        super().show_preferences(preferences)
        self.reach.setCurrentIndex(self.reach.findData(preferences.reach))
        self.port.setValue(preferences.port)
        network = preferences.reach == "network"
        self.wants_key.setChecked(preferences.needs_key)
        self.wants_key.setEnabled(not network)
        self.wants_key.setToolTip("Where others can reach the model, a key is always asked for" if network else "")
        self.say(
            self._reach_hint,
            "Plain HTTP: prompts and answers can be read on the way, so only in a network that you trust."
            if network
            else "Web pages in a browser on this Mac cannot ask.",
        )
        self._allow_key()

    def show_serving(self, serving: Serving | None) -> None:
        """Where a running model is reached."""
        self.address.setText(serving.address if serving is not None else "No model runs")
        self.address.setAccessibleName(self.address.text())
        self.say(
            self._address_hint,
            f"Programs call the model {serving.model}. A change here counts at once and ends answers that programs get."
            if serving is not None
            else "These settings count as soon as one starts.",
        )

    def show_key(self, key: str, trouble: str) -> None:
        """The key that programs show."""
        self._key = key
        self.say(self._key_hint, trouble or "It stays the same until you make a new one.")
        self._allow_key()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.reach.set_theme(theme)
        set_ink(self.address, theme.text)

    def _allow_key(self) -> None:
        asked = self.preferences.needs_key
        reason = "" if asked and self._key else "There is no key yet" if asked else "No key is asked for"
        for control, tip in ((self.copy, "Copy the key"), (self.renew, "Programs that show the old one are refused")):
            control.setEnabled(not reason)
            control.setToolTip(reason or tip)

    def _on_reach(self) -> None:
        self.change(reach=cast("Reach", self.reach.currentData()))

    def _on_port(self) -> None:
        if self.port.value() != self.preferences.port:
            self.change(port=self.port.value())

    def _on_wants_key(self, on: bool) -> None:
        self.change(wants_key=on)

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self._key)
