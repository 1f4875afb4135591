"""One node under a model: what it has, and the buttons that keep a full copy there or delete what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QPushButton, QStackedLayout, QVBoxLayout, QWidget

from gui.widgets.labels import ElidedLabel, label, set_ink

if TYPE_CHECKING:
    from gui.models.view import NodeLine
    from gui.theme import Theme


def small_button(text: str, name: str) -> QPushButton:
    """A button as high as a line."""
    button = QPushButton(text)
    button.setObjectName(name)
    button.setProperty("small", True)
    return button


class NodeRow(QWidget):
    """Deleting asks in place: the row becomes the question.

    Signals:
        keep_wanted: The node's id: keep a full copy there.
        delete_wanted: The node's id: delete what is there; the person has confirmed it.
    """

    keep_wanted = Signal(str)
    delete_wanted = Signal(str)

    def __init__(self, line: NodeLine, theme: Theme) -> None:
        super().__init__()
        self.line = line
        self.setObjectName(f"node_row_{line.node_id[:12]}")
        self._name = ElidedLabel("node_row_name", 12, QFont.Weight.DemiBold)
        self._words = ElidedLabel("node_row_words", 12)
        self.keep = small_button("Keep Full Copy", "keep_full")
        self.keep.clicked.connect(self._on_keep)
        self.delete = small_button("Delete…", "delete_here")
        self.delete.clicked.connect(self._on_delete)
        facts = QWidget()
        grid = QVBoxLayout(facts)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(1)
        grid.addWidget(self._name)
        grid.addWidget(self._words)
        usual = QWidget()
        row = QHBoxLayout(usual)
        row.setContentsMargins(0, 4, 0, 4)
        row.setSpacing(8)
        row.addWidget(facts, 1)
        row.addWidget(self.keep)
        row.addWidget(self.delete)
        self._question = label("delete_question", 12, QFont.Weight.Medium, wrap=True)
        self.confirm = small_button("Delete", "delete_confirm")
        self.confirm.clicked.connect(self._on_confirm)
        self.refuse = small_button("Keep It", "delete_refuse")
        self.refuse.clicked.connect(self._on_refuse)
        asking = QWidget()
        asked = QGridLayout(asking)
        asked.setContentsMargins(0, 4, 0, 4)
        asked.addWidget(self._question, 0, 0)
        asked.addWidget(self.refuse, 0, 1)
        asked.addWidget(self.confirm, 0, 2)
        asked.setColumnStretch(0, 1)
        self._pages = QStackedLayout(self)
        self._pages.addWidget(usual)
        self._pages.addWidget(asking)
        self.show_line(line)
        self.set_theme(theme)

    @property
    def asks(self) -> bool:
        """Whether it asks if it should delete."""
        return self._pages.currentIndex() == 1

    def show_line(self, line: NodeLine) -> None:
        """The node has something else now."""
        self.line = line
        self._name.setText(line.name)
        self._words.setText(line.words)
        self.setToolTip(line.disk)
        self.setAccessibleName(f"{line.name}: {line.words}")
        for button, reason, verb in (
            (self.keep, line.keep_reason, "Keep a full copy on"),
            (self.delete, line.delete_reason, "Delete it on"),
        ):
            button.setAccessibleName(f"{verb} {line.name}")
            button.setEnabled(reason is None)
            button.setToolTip(reason or f"{verb} {line.name}")
            button.setAccessibleDescription(reason or "")
        self.delete.setVisible(line.is_there)
        self._question.setText(line.question)
        self.confirm.setAccessibleName(f"Yes, delete it on {line.name}")
        if self.asks and (not line.is_there or line.delete_reason is not None):
            self._pages.setCurrentIndex(0)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        set_ink(self._name, theme.text)
        set_ink(self._words, theme.dim)
        set_ink(self._question, theme.text)

    def _on_keep(self) -> None:
        self.keep_wanted.emit(self.line.node_id)

    def _on_delete(self) -> None:
        self._pages.setCurrentIndex(1)
        self.refuse.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_confirm(self) -> None:
        self._pages.setCurrentIndex(0)
        self.delete_wanted.emit(self.line.node_id)

    def _on_refuse(self) -> None:
        self._pages.setCurrentIndex(0)
        self.delete.setFocus(Qt.FocusReason.OtherFocusReason)
