"""Text in the theme's colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFont, QPainter, QPalette
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from gui.theme import sized_font

if TYPE_CHECKING:
    from PySide6.QtGui import QColor, QPaintEvent


def set_ink(widget: QWidget, color: QColor) -> None:
    """Give a widget's text a colour, in every state."""
    if widget.window().isVisible():
        widget.ensurePolished()  # else the style sheet, when it is first shown, would undo what came after this
    palette = widget.palette()
    roles = (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text)
    if all(palette.color(role) == color for role in roles):
        return
    for role in roles:
        palette.setColor(role, color)
    widget.setPalette(palette)


def label(name: str, pixels: int, weight: QFont.Weight = QFont.Weight.Normal, *, wrap: bool = False) -> QLabel:
    """A plain-text label: what it shows may come from a model or another Mac, and must never be read as markup."""
    result = QLabel()
    result.setObjectName(name)
    result.setFont(sized_font(pixels, weight))
    result.setTextFormat(Qt.TextFormat.PlainText)
    result.setWordWrap(wrap)
    return result


class ElidedLabel(QLabel):
    """One line that is cut with an ellipsis where it has no room; the tooltip then has all of it."""

    def __init__(
        self,
        name: str,
        pixels: int,
        weight: QFont.Weight = QFont.Weight.Normal,
        align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
    ) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setFont(sized_font(pixels, weight))
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setAlignment(align | Qt.AlignmentFlag.AlignVCenter)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + 2, self.fontMetrics().height() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(40, self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        tip = "" if shown == self.text() else self.text()
        if tip != self.toolTip():
            self.setToolTip(tip)
        painter = QPainter(self)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        painter.drawText(self.rect(), self.alignment(), shown)
