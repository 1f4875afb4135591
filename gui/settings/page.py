"""What the pages of the settings have in common."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton

from gui.preferences import Preferences
from gui.settings.form import Form


class Page(Form):
    """Changes preferences at once.

    Signals:
        changed: The :class:`Preferences` as they are set now.
    """

    changed = Signal(object)

    def __init__(self, name: str, title: str) -> None:
        super().__init__(name, title)
        self.preferences = Preferences()

    def show_preferences(self, preferences: Preferences) -> None:
        """What is set."""
        self.preferences = preferences

    def change(self, **values: object) -> None:
        """The person set something."""
        self.preferences = msgspec.structs.replace(self.preferences, **values)
        self.changed.emit(self.preferences)


def button(text: str, name: str) -> QPushButton:
    """A button that never takes Return from a field."""
    made = QPushButton(text)
    made.setObjectName(name)
    made.setAutoDefault(False)
    return made
