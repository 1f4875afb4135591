"""A choice from a list that drops down, with a mark that says so in every style."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QComboBox

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gui.theme import Theme

_MARK_ROOM = 14


class PopUp(QComboBox):
    """macOS draws its own mark; elsewhere the style sheet has none that takes the theme's colours."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        return hint if sys.platform == "darwin" else QSize(hint.width() + _MARK_ROOM, hint.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if sys.platform == "darwin":
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        color = self._theme.dim if self.isEnabled() else self._theme.faint
        painter.setPen(QPen(color, 1.5, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
        tip = QPointF(self.width() - 12, self.height() / 2 + 2)
        painter.drawPolyline([tip + QPointF(-3.5, -3.5), tip, tip + QPointF(3.5, -3.5)])
