"""What is said in the middle of a view that has nothing to show yet: an icon and a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from gui.icons import pixmap
from gui.theme import sized_font

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gui.theme import Theme

_ICON = 28


def paint_hint(on: QWidget, icon: str, words: str, theme: Theme) -> None:
    """Paint it in the middle of a widget, from its paint event."""
    painter = QPainter(on)
    middle = on.rect().center()
    picture = pixmap(icon, theme.faint, _ICON, on.devicePixelRatioF())
    painter.drawPixmap(middle.x() - _ICON // 2, middle.y() - _ICON - 8, picture)
    painter.setFont(sized_font(12))
    painter.setPen(theme.dim)
    flags = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
    painter.drawText(QRectF(16, middle.y(), on.width() - 32, 40), flags, words)


class Hint(QWidget):
    """Nothing but that."""

    def __init__(self, icon: str, theme: Theme) -> None:
        super().__init__()
        self._icon = icon
        self._theme = theme
        self.words = ""

    def say(self, words: str) -> None:
        """Say something else."""
        if words != self.words:
            self.words = words
            self.setAccessibleName(words)
            self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        paint_hint(self, self._icon, self.words, self._theme)
