"""A strip that says what went wrong, until it is dismissed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QFont, QPainter, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

from gui.icons import pixmap
from gui.theme import faded
from gui.widgets.labels import label, set_ink

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gui.theme import Theme


class Banner(QWidget):
    """Hidden while there is nothing to say.

    Signals:
        dismissed: The person has read it.
    """

    dismissed = Signal()

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
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 8, 8)
        row.setSpacing(10)
        row.addWidget(self._icon)
        row.addWidget(self._words, 1)
        row.addWidget(self._button)
        self.set_theme(theme)
        self.hide()

    @property
    def words(self) -> str:
        return self._words.text()

    def say(self, words: str) -> None:
        """Show a sentence; an empty one hides the strip."""
        self._words.setText(words)
        self.setAccessibleName(words)
        self.setVisible(bool(words))

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self._icon.setPixmap(pixmap("warning", theme.bad, 18))
        set_ink(self._words, theme.text)
        self.update()

    def _on_dismiss(self) -> None:
        self.say("")
        self.dismissed.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(faded(self._theme.bad, 0.13))
        painter.setPen(QPen(faded(self._theme.bad, 0.55), 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
