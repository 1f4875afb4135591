"""The window of settings: three pages, a switch between them, and no button to apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QDialog, QHBoxLayout, QStackedWidget, QVBoxLayout

from gui.settings.general import GeneralPage
from gui.settings.models import ModelsPage
from gui.settings.server import ServerPage
from gui.widgets.labels import label, set_ink
from gui.widgets.segmented import Segmented

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gui.preferences import Preferences
    from gui.theme import Theme

_SIZE = (600, 430)


class SettingsDialog(QDialog):
    """Everything applies at once.

    Signals:
        changed: The :class:`Preferences` as they are set now.
    """

    changed = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("settings_dialog")
        self.setWindowTitle("Settings")
        self.setModal(False)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._theme = theme
        self.general, self.models, self.server = GeneralPage(theme), ModelsPage(theme), ServerPage(theme)
        self.pages = {"general": self.general, "models": self.models, "server": self.server}
        self.switch = Segmented({name: page.accessibleName() for name, page in self.pages.items()}, theme)
        self.switch.setObjectName("settings_switch")
        self.switch.setAccessibleName("Page of settings")
        self.switch.chosen.connect(self.show_page)
        self._heading = label("settings_heading", 17, QFont.Weight.DemiBold)
        self._heading.setText("Settings")
        self._stack = QStackedWidget()
        top = QHBoxLayout()
        top.setContentsMargins(24, 18, 24, 2)
        top.addWidget(self._heading)
        top.addStretch(1)
        top.addWidget(self.switch)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(top)
        column.addWidget(self._stack, 1)
        for page in self.pages.values():
            page.changed.connect(self._on_changed)
            self._stack.addWidget(page)
        self.show_page("general")
        self.resize(*_SIZE)
        self.set_theme(theme)

    @Slot(str)
    def show_page(self, name: str) -> None:
        """Show one of ``general``, ``models`` and ``server``."""
        self.switch.show_choice(name)
        self._stack.setCurrentWidget(self.pages[name])

    def show_preferences(self, preferences: Preferences) -> None:
        """What is set."""
        for page in self.pages.values():
            page.show_preferences(preferences)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        set_ink(self._heading, theme.text)
        self.switch.set_theme(theme)
        for page in self.pages.values():
            page.set_theme(theme)

    def _on_changed(self, preferences: Preferences) -> None:
        self.show_preferences(preferences)
        self.changed.emit(preferences)
