"""The page of a window without a model: those in reach, a folder, or the demo's."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from gui.icons import pixmap
from gui.models.words import short_facts_words
from gui.theme import faded, sized_font
from gui.widgets.labels import label, set_ink
from runtime.agent.models.messages import ModelOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPaintEvent

    from gui.theme import Theme
    from runtime.cluster.catalogue import Listing

SHOWN_MODELS = 5
_WIDTH = 560
_ROW_HEIGHT = 46
_STAR = 14
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_QUESTION = "Which model do you want to run?"
_HINT = "Its layers are shared out over your Macs. Nothing is loaded before you press Start."


class Welcome(QWidget):
    """Asks for a model.

    Signals:
        chosen: A :class:`ModelOrder`, or None for the demo's model.
        folder_wanted: The person wants to look for a folder.
        all_wanted: The person wants to see all models, or to search.
    """

    chosen = Signal(object)
    folder_wanted = Signal()
    all_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setObjectName("welcome")
        self.setAccessibleName(_QUESTION)
        self._question = label("welcome_question", 22, QFont.Weight.DemiBold)
        self._hint = label("welcome_hint", 13, wrap=True)
        self._question.setText(_QUESTION)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(8)
        self.rows: list[ModelRow] = []
        self.folder = QPushButton("Open a Model Folder…")
        self.folder.setObjectName("welcome_folder")
        self.folder.setToolTip("A folder in MLX format: config.json, tokenizer and safetensors files")
        self.folder.clicked.connect(self.folder_wanted)
        self.demo = QPushButton("Try the Demo Model")
        self.demo.setObjectName("welcome_demo")
        self.demo.setToolTip("SmolLM2-135M-Instruct, 110 MB, which came with Pomona")
        self.demo.clicked.connect(partial(self.chosen.emit, None))
        self.all = QPushButton("All Models and Search…")
        self.all.setObjectName("welcome_all")
        self.all.setToolTip("Every model on your nodes, and those on the Hugging Face hub")
        self.all.clicked.connect(self.all_wanted)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.all)
        buttons.addWidget(self.folder)
        buttons.addWidget(self.demo)
        buttons.addStretch(1)
        inner = QWidget()
        inner.setMaximumWidth(_WIDTH)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addStretch(2)
        column.addWidget(self._question)
        column.addWidget(self._hint)
        column.addSpacing(8)
        column.addLayout(self._rows)
        column.addSpacing(4)
        column.addLayout(buttons)
        column.addStretch(3)
        outer = QHBoxLayout(self)
        outer.setContentsMargins(24, 18, 24, 18)
        outer.addStretch(1)
        outer.addWidget(inner, 100)
        outer.addStretch(1)
        self.show_reading("")
        self.set_theme(theme)

    def show_models(self, listings: Sequence[Listing]) -> None:
        """List the first of the models in reach."""
        for row in self.rows:
            row.hide()
            row.deleteLater()
        self.rows = []
        for listing in listings[:SHOWN_MODELS]:
            row = ModelRow(listing, self._theme)
            order = ModelOrder(listing.name, listing.repository, listing.revision)
            row.clicked.connect(partial(self.chosen.emit, order))
            self._rows.addWidget(row)
            self.rows.append(row)
        for before, after in pairwise([*self.rows, self.all]):
            self.setTabOrder(before, after)

    def show_reading(self, name: str) -> None:
        """Say which model is being read; empty while none is."""
        self._hint.setText(f"Reading {name}…" if name else _HINT)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        set_ink(self._question, theme.text)
        set_ink(self._hint, theme.dim)
        for row in self.rows:
            row.set_theme(theme)


class ModelRow(QPushButton):
    """One model: its name on the left, what it is made of on the right."""

    def __init__(self, listing: Listing, theme: Theme) -> None:
        super().__init__(listing.name)
        self._theme = theme
        self._facts = short_facts_words(listing)
        self._is_favourite = listing.is_favourite
        self.setObjectName(f"model_{listing.name}")
        star = ", a favourite" if listing.is_favourite else ""
        self.setAccessibleName(f"{listing.name}{star}, {self._facts}")
        self.setToolTip(listing.full_name)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(_WIDTH, _ROW_HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = self._theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        hot = self.underMouse() or self.hasFocus()
        painter.setBrush(theme.raised if self.isDown() else theme.surface)
        painter.setPen(QPen(theme.accent if hot else theme.line, 2 if self.hasFocus() else 1))
        painter.drawRoundedRect(box, 9, 9)
        inner = box.adjusted(14, 0, -14, 0)
        small, strong = sized_font(12), sized_font(14, QFont.Weight.DemiBold)
        painter.setFont(small)
        painter.setPen(theme.dim)
        painter.drawText(inner, _RIGHT, self._facts)
        room = inner.width() - QFontMetricsF(small).horizontalAdvance(self._facts) - 16
        painter.setFont(strong)
        painter.setPen(theme.text if self.isEnabled() else faded(theme.text, 0.5))
        if self._is_favourite:
            painter.drawPixmap(
                inner.topLeft() + QPointF(0, (inner.height() - _STAR) / 2), pixmap("starred", theme.star, _STAR)
            )
            inner.adjust(_STAR + 8, 0, 0, 0)
            room -= _STAR + 8
        name = QFontMetricsF(strong).elidedText(self.text(), Qt.TextElideMode.ElideMiddle, max(room, 40))
        painter.drawText(inner, _LEFT, name)
