"""Where programs reach the running model, to be copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtGui import QFont, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QWidget

from gui.widgets.buttons import quiet_button, say_done
from gui.widgets.labels import ElidedLabel, label, set_ink

if TYPE_CHECKING:
    from gui.theme import Theme
    from runtime.cluster.messages import Serving


class ServerLine(QWidget):
    """Hidden while no program can reach the model.

    Signals:
        clients_wanted: Settings for programs are wanted.
    """

    clients_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("server_line")
        self._serving: Serving | None = None
        self._name = label("server_name", 12)
        self._name.setText("Server")
        self.address = ElidedLabel("server_address", 12, QFont.Weight.Medium)
        self.copy = quiet_button("Copy", "copy_address", "Copy the address, for programs that speak OpenAI's API")
        self.copy.clicked.connect(self._on_copy)
        self.copy_key = quiet_button("Copy Key", "copy_key", "Copy the key that programs have to show")
        self.copy_key.clicked.connect(self._on_copy_key)
        self.connect_button = quiet_button(
            "Connect…", "connect_program", "Ready-made settings for Claude Code, aider and other programs"
        )
        self.connect_button.clicked.connect(self.clients_wanted)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addStretch(1)
        row.addWidget(self._name)
        row.addWidget(self.address, 100)
        row.addWidget(self.copy)
        row.addWidget(self.copy_key)
        row.addWidget(self.connect_button)
        self.set_theme(theme)
        self.hide()

    def show_serving(self, serving: Serving | None) -> None:
        """Show another address, or none."""
        if serving == self._serving:
            return
        self._serving = serving
        self.setVisible(serving is not None)
        if serving is None:
            return
        self.address.setText(serving.address)
        self.address.setMaximumWidth(self.address.sizeHint().width())
        self.address.setAccessibleName(f"Server address {serving.address}")
        self.address.setAccessibleDescription(f"Programs call the model {serving.model}")
        self.copy_key.setVisible(bool(serving.api_key))
        self.setToolTip(f"Programs reach the model here, under the name {serving.model}")

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        set_ink(self._name, theme.dim)
        set_ink(self.address, theme.text)

    def _on_copy(self) -> None:
        if self._serving is not None:
            QGuiApplication.clipboard().setText(self._serving.address)
            say_done(self.copy)

    def _on_copy_key(self) -> None:
        if self._serving is not None:
            QGuiApplication.clipboard().setText(self._serving.api_key)
            say_done(self.copy_key)
