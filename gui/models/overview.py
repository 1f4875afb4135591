"""What the pane shows while no model is chosen: what models take on each node's disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QFont
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from gui.models.words import disk_words
from gui.widgets.labels import ElidedLabel, label, set_ink

if TYPE_CHECKING:
    from gui.theme import Theme
    from runtime.cluster.catalogue import ModelPlace

_HINT = "Choose a model to see what it can do and which node has what of it."


class Overview(QWidget):
    """A line for each node."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setObjectName("disk_overview")
        self.setAccessibleName("Models on each disk")
        self._heading = label("overview_heading", 13, QFont.Weight.DemiBold)
        self._heading.setText("On disk")
        self._hint = label("overview_hint", 12, wrap=True)
        self._hint.setText(_HINT)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(5)
        self._grid.setColumnStretch(1, 1)
        self.lines: list[tuple[QLabel, QLabel]] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(4, 2, 14, 12)
        column.setSpacing(8)
        column.addWidget(self._heading)
        column.addLayout(self._grid)
        column.addWidget(self._hint)
        column.addStretch(1)
        self.show_places(())
        self.set_theme(theme)

    def show_places(self, places: tuple[ModelPlace, ...]) -> None:
        """The nodes, or what they have, are others."""
        for line in self.lines:
            for part in line:
                part.hide()
                part.deleteLater()
        self.lines = []
        self._heading.setVisible(bool(places))
        for row, place in enumerate(places):
            name, words = label("place_name", 12, QFont.Weight.Medium), ElidedLabel("place_words", 12)
            name.setText(place.name)
            words.setText(disk_words(place))
            self._grid.addWidget(name, row, 0)
            self._grid.addWidget(words, row, 1)
            self.lines.append((name, words))
        self._ink()

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        set_ink(self._heading, theme.text)
        set_ink(self._hint, theme.dim)
        self._ink()

    def _ink(self) -> None:
        for name, words in self.lines:
            set_ink(name, self._theme.text)
            set_ink(words, self._theme.dim)
