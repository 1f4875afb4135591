"""What the person said, as a bubble on the right."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gui.chat.prose import Prose
from gui.widgets.buttons import quiet_button

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from gui.theme import Theme

_BUBBLE_SHARE = 0.82
"""A question takes at most this part of the width."""


class Question(QWidget):
    """A bubble as wide as its text.

    Signals:
        edit_wanted: The person wants to say it otherwise.
    """

    edit_wanted = Signal()

    def __init__(self, text: str, theme: Theme) -> None:
        super().__init__()
        self._bubble = _Bubble(text, theme)
        self.edit = quiet_button("Edit", "edit_question", "Ask this in other words; what follows it is replaced")
        self.edit.clicked.connect(self.edit_wanted)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self.edit, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._bubble)
        self.setObjectName("question")
        self.setAccessibleName(f"You: {text}")

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._bubble.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._bubble.fit(self.width() * _BUBBLE_SHARE)


class _Bubble(QWidget):
    def __init__(self, text: str, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._prose = Prose(theme)
        self._prose.setPlainText(text)
        box = QVBoxLayout(self)
        box.setContentsMargins(12, 8, 12, 8)
        box.addWidget(self._prose)

    def fit(self, limit: float) -> None:
        document = self._prose.document()
        document.setTextWidth(-1)
        ideal = ceil(document.idealWidth()) + 25
        self.setFixedWidth(max(min(ideal, int(limit)), 40))

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._prose.set_theme(theme, None)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.raised)
        painter.drawRoundedRect(QRectF(self.rect()), 12, 12)
