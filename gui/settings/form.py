"""Rows of settings: what it is on the left, the control beside it, and what it means under that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QWidget

from gui.widgets.labels import label, set_ink

if TYPE_CHECKING:
    from gui.theme import Theme

_NAME_WIDTH = 132
_GAP = 10


class Form(QWidget):
    """A page of rows. ``add`` returns the hint under the row, whose words may change."""

    def __init__(self, name: str, title: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(title)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(24, 16, 24, 20)
        self._grid.setHorizontalSpacing(14)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnMinimumWidth(0, _NAME_WIDTH)
        self._grid.setColumnStretch(1, 1)
        self._names: list[QLabel] = []
        self._hints: list[QLabel] = []

    def add(self, name: str, *controls: QWidget, hint: str = "", stretch: bool = False) -> QLabel:
        """One row. With ``stretch`` the first control takes all the width."""
        title = label("setting_name", 13)
        title.setText(name)
        title.setBuddy(controls[0])
        row = QHBoxLayout()
        row.setSpacing(8)
        for index, control in enumerate(controls):
            row.addWidget(control, 1 if stretch and index == 0 else 0)
        if not stretch:
            row.addStretch(1)
        under = label("setting_hint", 12, wrap=True)
        under.setText(hint)
        under.setVisible(bool(hint))
        under.setContentsMargins(0, 0, 0, _GAP)
        place = self._grid.rowCount()
        self._grid.setRowMinimumHeight(place + 1, _GAP)
        self._grid.addWidget(title, place, 0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._grid.addLayout(row, place, 1)
        self._grid.addWidget(under, place + 1, 1)
        self._names.append(title)
        self._hints.append(under)
        return under

    def finish(self) -> None:
        """All rows are there; what room is left lies under them."""
        self._grid.setRowStretch(self._grid.rowCount(), 1)

    def say(self, hint: QLabel, words: str) -> None:
        """Change what stands under a row."""
        hint.setText(words)
        hint.setVisible(bool(words))

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        for name in self._names:
            set_ink(name, theme.text)
        for hint in self._hints:
            set_ink(hint, theme.dim)
