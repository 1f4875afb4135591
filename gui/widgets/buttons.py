"""Small buttons that do not catch the eye, and how one says that it has done what it was pressed for."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QPushButton

_SAID_MS = 1600


def quiet_button(text: str, name: str, tip: str) -> QPushButton:
    """A button without a face until the mouse is over it."""
    button = QPushButton(text)
    button.setObjectName(name)
    button.setProperty("quiet", True)
    button.setFlat(True)
    button.setToolTip(tip)
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    return button


def say_done(button: QPushButton, words: str = "Copied") -> None:
    """Say so in place of the button's text, for a moment and without a change of its width."""
    if button.property("usual") is None:
        button.setProperty("usual", button.text())
    usual = str(button.property("usual"))
    button.setMinimumWidth(button.width())
    button.setText(words)
    QTimer.singleShot(_SAID_MS, button, lambda: _say_usual(button, usual))


def _say_usual(button: QPushButton, usual: str) -> None:
    button.setText(usual)
    button.setMinimumWidth(0)
