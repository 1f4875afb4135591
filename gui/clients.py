"""Ready-made settings for programs that people use, beside the server's address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QFont, QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from gui.theme import mono_font
from gui.widgets.buttons import say_done
from gui.widgets.labels import label, set_ink
from runtime.server.clients import client_settings

if TYPE_CHECKING:
    from gui.theme import Theme
    from runtime.cluster.messages import Serving

_LIST_WIDTH, _TEXT_WIDTH, _HEIGHT = 256, 430, 224
_ROW_HEIGHT = 29


class ClientsDialog(QDialog):
    """Programs on the left; what to write where on the right."""

    def __init__(self, serving: Serving, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("clients_dialog")
        self.setWindowTitle("Connect a Program")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._settings = client_settings(serving.address, serving.model, serving.api_key)
        title = label("clients_title", 15, QFont.Weight.DemiBold)
        title.setText("Connect a Program")
        words = label("clients_words", 13, wrap=True)
        words.setText(
            f"Programs that speak OpenAI's or Anthropic's API reach the model at {serving.address}, "
            f"under the name {serving.model}."
        )
        set_ink(words, theme.dim)
        self.programs = QListWidget()
        self.programs.setObjectName("clients_programs")
        self.programs.setAccessibleName("Programs")
        self.programs.setFixedWidth(_LIST_WIDTH)
        self.programs.setFrameShape(QFrame.Shape.NoFrame)
        self.programs.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for one in self._settings:
            item = QListWidgetItem(one.program, self.programs)
            item.setSizeHint(QSize(0, _ROW_HEIGHT))
        self.programs.currentRowChanged.connect(self._show)
        self.where = label("clients_where", 12, wrap=True)
        set_ink(self.where, theme.dim)
        self.text = QPlainTextEdit()
        self.text.setObjectName("clients_text")
        self.text.setAccessibleName("Settings")
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setFont(mono_font(12))
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setFixedSize(_TEXT_WIDTH, _HEIGHT)
        self.text.document().setDocumentMargin(10)
        self.copy = QPushButton("Copy")
        self.copy.setObjectName("clients_copy")
        self.copy.setProperty("primary", True)
        self.copy.setDefault(True)
        self.copy.clicked.connect(self._on_copy)
        close = QPushButton("Close")
        close.setObjectName("clients_close")
        close.setAutoDefault(False)
        close.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addStretch()
        buttons.addWidget(close)
        buttons.addWidget(self.copy)
        right = QVBoxLayout()
        right.setSpacing(6)
        right.addWidget(self.where)
        right.addWidget(self.text, 1)
        middle = QHBoxLayout()
        middle.setSpacing(14)
        middle.addWidget(self.programs)
        middle.addLayout(right, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(22, 20, 22, 18)
        column.setSpacing(12)
        column.addWidget(title)
        column.addWidget(words)
        column.addLayout(middle)
        column.addLayout(buttons)
        self.programs.setCurrentRow(0)

    @Slot(int)
    def _show(self, row: int) -> None:
        chosen = self._settings[row]
        in_terminal = chosen.where == "a terminal"
        self.where.setText("Type this in a terminal:" if in_terminal else f"Write this into {chosen.where}:")
        self.text.setPlainText(chosen.text)

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())
        say_done(self.copy)
