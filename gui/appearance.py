"""Light, dark, or as the system is: which theme is on, and telling Qt about it."""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from gui.theme import DARK, LIGHT, Theme, palette, style_sheet


class Choice(Enum):
    """What the person chose in the View menu or the settings."""

    SYSTEM = "Follow System"
    LIGHT = "Light"
    DARK = "Dark"


class Appearance(QObject):
    """Holds the choice and the theme that follows from it.

    Signals:
        theme_changed: The new :class:`gui.theme.Theme`.
        chosen: The new :class:`Choice`.
    """

    theme_changed = Signal(object)
    chosen = Signal(object)

    def __init__(self, choice: Choice = Choice.SYSTEM, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._choice = choice
        self._hints = QGuiApplication.styleHints()  # kept: its wrapper must outlive the connection
        self._hints.colorSchemeChanged.connect(self._on_system_changed)
        self.theme = self._wanted()
        self._apply()

    @property
    def choice(self) -> Choice:
        return self._choice

    def choose(self, choice: Choice) -> None:
        """The person chose."""
        self._choice = choice
        scheme = {
            Choice.SYSTEM: Qt.ColorScheme.Unknown,
            Choice.LIGHT: Qt.ColorScheme.Light,
            Choice.DARK: Qt.ColorScheme.Dark,
        }[choice]
        self._hints.setColorScheme(scheme)  # native controls and the title bar follow
        self._update()
        self.chosen.emit(choice)

    def _wanted(self) -> Theme:
        if self._choice is Choice.SYSTEM:
            return DARK if self._hints.colorScheme() is Qt.ColorScheme.Dark else LIGHT
        return DARK if self._choice is Choice.DARK else LIGHT

    @Slot()
    def _on_system_changed(self) -> None:
        self._update()

    def _update(self) -> None:
        wanted = self._wanted()
        if wanted is not self.theme:
            self.theme = wanted
            self._apply()
            self.theme_changed.emit(wanted)

    def _apply(self) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.setPalette(palette(self.theme))
        app.setStyleSheet(style_sheet(self.theme))
