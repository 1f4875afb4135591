"""A strip that says what went wrong, until it is dismissed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QFont, QPainter, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

from gui.icons import pixmap
from gui.theme import faded
from gui.widgets.labels import label, set_ink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QColor, QPaintEvent

    from gui.theme import Theme


class Banner(QWidget):
    """Hidden while there is nothing to say. What can be done about it stands beside it as buttons.

    Signals:
        dismissed: The person has read it.
        action_wanted: The name of the button that was pressed.
    """

    dismissed = Signal()
    action_wanted = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("banner")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self._icon = QLabel()
        self._words = label("banner_words", 13, QFont.Weight.Medium, wrap=True)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._button = QPushButton("Dismiss")
        self._button.setObjectName("banner_dismiss")
        self._button.setProperty("quiet", True)
        self._button.setFlat(True)
        self._button.clicked.connect(self._on_dismiss)
        self._actions = QHBoxLayout()
        self._actions.setSpacing(8)
        self.buttons: list[QPushButton] = []
        self._is_bad = True
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 8, 8)
        row.setSpacing(10)
        row.addWidget(self._icon)
        row.addWidget(self._words, 1)
        row.addLayout(self._actions)
        row.addWidget(self._button)
        self.set_theme(theme)
        self.hide()

    @property
    def words(self) -> str:
        return self._words.text()

    def say(self, words: str, actions: Mapping[str, str] | None = None, *, bad: bool = True) -> None:
        """Show a sentence and buttons (texts by name); an empty sentence hides the strip."""
        for button in self.buttons:
            button.hide()
            button.deleteLater()
        self.buttons = [self._make_button(name, text) for name, text in (actions or {}).items()]
        self._is_bad = bad
        self.set_theme(self._theme)
        self._words.setText(words)
        self.setAccessibleName(words)
        self.setVisible(bool(words))

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self._icon.setPixmap(pixmap("warning", self._ink, 18))
        set_ink(self._words, theme.text)
        self.update()

    @property
    def _ink(self) -> QColor:
        return self._theme.bad if self._is_bad else self._theme.warn

    def _make_button(self, name: str, text: str) -> QPushButton:
        button = QPushButton(text)
        button.setObjectName(f"banner_{name}")
        button.clicked.connect(partial(self.action_wanted.emit, name))
        self._actions.addWidget(button)
        return button

    def _on_dismiss(self) -> None:
        self.say("")
        self.dismissed.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(faded(self._ink, 0.13))
        painter.setPen(QPen(faded(self._ink, 0.55), 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
