"""A rounded surface with a title row: what plots, chat and the other panes lie on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFont, QPainter, QPen
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gui.widgets.labels import label, set_ink

if TYPE_CHECKING:
    from PySide6.QtCore import QRect
    from PySide6.QtGui import QPaintEvent

    from gui.theme import Theme

_ROW_HEIGHT = 28
_RADIUS = 10


class Panel(QWidget):
    """Title on the left; subclasses add to ``title_row`` and ``body``."""

    def __init__(self, title: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._title = label("title", 12, QFont.Weight.DemiBold)
        self._title.setText(title)
        self.title_row = QHBoxLayout()
        self.title_row.setContentsMargins(14, 0, 12, 0)
        self.title_row.setSpacing(8)
        self.title_row.addWidget(self._title)
        self.title_row.addStretch()
        self.title_row.addStrut(_ROW_HEIGHT)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(1, 6, 1, 1)
        self.body.setSpacing(4)
        self.body.addLayout(self.title_row)
        self.setAccessibleName(title)

    def make_room(self, left: int, right: int) -> None:
        """Leave so much of the title row to others, who then also say what this is."""
        self._title.hide()
        self.title_row.setContentsMargins(left, 0, right, 0)
        self.title_row.setSpacing(4)

    @property
    def theme(self) -> Theme:
        return self._theme

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        set_ink(self._title, theme.text)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._is_flat(event.rect()):  # as when an answer streams; smooth edges take most of the time otherwise
            painter.fillRect(event.rect(), self._theme.surface)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(self._theme.surface)
        painter.setPen(QPen(self._theme.line, 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)

    def _is_flat(self, part: QRect) -> bool:
        """Whether neither the line nor a corner is in this part."""
        upright = self.rect().adjusted(_RADIUS, 1, -_RADIUS, -1)
        lying = self.rect().adjusted(1, _RADIUS, -1, -_RADIUS)
        return upright.contains(part) or lying.contains(part)
