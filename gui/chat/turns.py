"""The list of a chat's turns. It follows the end of the text only while the end is in view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QPushButton, QScrollArea, QVBoxLayout, QWidget

from gui.chat.answer import Answer
from gui.chat.question import Question
from gui.widgets.hint import paint_hint

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from gui.theme import Theme

_NEAR_BOTTOM = 6


class Turns(QScrollArea):
    """Questions and answers, oldest first."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._follow = True
        self._words = ""
        self.setObjectName("chat_turns")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list = QWidget()
        self._column = QVBoxLayout(self._list)
        self._column.setContentsMargins(14, 6, 14, 6)
        self._column.setSpacing(14)
        self._column.addStretch(1)
        self.setWidget(self._list)
        self._list.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._on_scrolled)
        bar.rangeChanged.connect(self._on_grown)
        self._jump = QPushButton("Newest", self)
        self._jump.setObjectName("chat_newest")
        self._jump.setToolTip("Go to the end and follow it")
        self._jump.clicked.connect(self.to_end)
        self._jump.hide()

    def add(self, *turns: QWidget) -> None:
        """Add turns at the end, and go there: the person has just written."""
        for turn in turns:
            self._column.addWidget(turn)
        self.to_end()
        self.viewport().update()

    def clear(self) -> None:
        """Remove all turns."""
        while self._column.count() > 1:
            item = self._column.takeAt(1)
            widget = item.widget() if item else None
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self.viewport().update()

    def say(self, words: str | None) -> None:
        """What is written in the middle while there are no turns."""
        self._words = words or "Ask the model something"
        self.viewport().update()

    def to_end(self) -> None:
        """Show the end and stay there."""
        self._follow = True
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
        self._jump.hide()

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        for index in range(1, self._column.count()):
            item = self._column.itemAt(index)
            widget = item.widget() if item else None
            if isinstance(widget, Question | Answer):
                widget.set_theme(theme)
        self.viewport().update()

    def _on_scrolled(self, value: int) -> None:
        self._follow = value >= self.verticalScrollBar().maximum() - _NEAR_BOTTOM
        self._jump.setVisible(not self._follow)

    def _on_grown(self, _low: int, high: int) -> None:
        if self._follow:
            self.verticalScrollBar().setValue(high)
            self._jump.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        size = self._jump.sizeHint()
        self._jump.setGeometry(
            (self.width() - size.width()) // 2, self.height() - size.height() - 6, size.width(), size.height()
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._column.count() > 1:
            return
        paint_hint(self.viewport(), "chat", self._words, self._theme)
