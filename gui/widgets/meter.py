"""A thin bar with words: how much of something is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QWidget

from gui.theme import sized_font

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gui.theme import Theme

_BAR_WIDTH = 54.0
_FULL_SHARE = 0.85
"""From here on it warns."""


class Meter(QWidget):
    """Tokens of a limit. Hidden while there is no limit."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._theme: Theme | None = None
        self._used, self._limit = 0, 0
        self.words = ""
        self.setObjectName(name)
        self.setAccessibleName("Context used")
        self.hide()

    def show_tokens(self, used: int, limit: int) -> None:
        """Show so many of so many."""
        if (used, limit) == (self._used, self._limit):
            return
        self._used, self._limit = used, limit
        self.words = f"{used:,} of {limit:,} tokens" if limit else ""
        self.setAccessibleDescription(self.words)
        self.setToolTip(f"Prompt and answer of this chat take {self.words} of the context" if limit else "")
        self.setVisible(limit > 0)
        self.updateGeometry()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        font = sized_font(11)
        return QSize(round(QFontMetricsF(font).horizontalAdvance(self.words) + _BAR_WIDTH + 10), 14)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = self._theme
        if theme is None or not self._limit:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        share = min(self._used / self._limit, 1.0)
        painter.setFont(sized_font(11))
        painter.setPen(theme.dim)
        painter.drawText(
            QRectF(0, 0, self.width() - _BAR_WIDTH - 6, self.height()),
            Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
            self.words,
        )
        bar = QRectF(self.width() - _BAR_WIDTH, self.height() / 2 - 2, _BAR_WIDTH, 4)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.track)
        painter.drawRoundedRect(bar, 2, 2)
        if share > 0:
            painter.setBrush(theme.warn if share >= _FULL_SHARE else theme.accent)
            painter.drawRoundedRect(QRectF(bar.left(), bar.top(), max(bar.width() * share, 3), 4), 2, 2)
