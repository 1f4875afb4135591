"""A switch between a few choices: radio buttons that are painted as one pill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QPainter, QPen
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QRadioButton, QSizePolicy, QWidget

from gui.theme import sized_font

if TYPE_CHECKING:
    from PySide6.QtCore import QPoint
    from PySide6.QtGui import QPaintEvent

    from gui.theme import Theme

_HEIGHT = 28


class Segmented(QWidget):
    """Exactly one choice is on. Each is a radio button: Tab reaches the switch, arrow keys change it.

    Signals:
        chosen: The person chose the value of this name.
    """

    chosen = Signal(str)

    def __init__(self, choices: dict[str, str], theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._group = QButtonGroup(self)
        self.segments: dict[str, _Segment] = {}
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(2, 2, 2, 2)
        self._row.setSpacing(0)
        self.setFixedHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        for name, text in choices.items():
            self.add(name, text)

    def add(self, name: str, text: str) -> None:
        """One more choice, at the end."""
        segment = _Segment(name, text, self._theme)
        segment.clicked.connect(self._on_clicked)
        self._group.addButton(segment)
        self.segments[name] = segment
        self._row.addWidget(segment)

    def show_choice(self, name: str) -> None:
        """Show a choice that was made elsewhere."""
        self.segments[name].setChecked(True)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        for segment in self.segments.values():
            segment.set_theme(theme)
        self.update()

    def _on_clicked(self) -> None:
        for name, segment in self.segments.items():
            if segment.isChecked():
                self.chosen.emit(name)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.track)
        painter.drawRoundedRect(QRectF(self.rect()), 7, 7)


class _Segment(QRadioButton):
    def __init__(self, name: str, text: str, theme: Theme) -> None:
        super().__init__(text)
        self._theme = theme
        self.setObjectName(f"segment_{name}")
        self.setAccessibleName(text)
        self.setFont(sized_font(12, QFont.Weight.Medium))
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + 20, _HEIGHT - 4)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def hitButton(self, position: QPoint) -> bool:  # noqa: N802  Qt's name
        return self.rect().contains(position)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = self._theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        if self.isChecked():
            painter.setPen(QPen(theme.line, 1))
            painter.setBrush(theme.faint if theme.dark else theme.surface)
            painter.drawRoundedRect(box, 5.5, 5.5)
        if self.hasFocus():
            painter.setPen(QPen(theme.accent, 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 5.5, 5.5)
        bright = self.isEnabled() and (self.isChecked() or self.underMouse())
        painter.setPen(theme.text if bright else theme.dim)
        painter.setFont(self.font())
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self.text())
