"""The question before a window closes on a model that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QMessageBox

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

_QUESTION = "The model is running. Stop it and close the window?"


class CloseQuestion(QObject):
    """Asked once at a time, as a sheet.

    Signals:
        confirmed: Stop and close.
    """

    confirmed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._parent = parent
        self._box: QMessageBox | None = None

    def ask(self) -> None:
        """Show it, unless it is there."""
        if self._box is not None:
            return
        box = QMessageBox(QMessageBox.Icon.Question, "Pomona", _QUESTION, parent=self._parent)
        box.setInformativeText("All workers end; the text of the chats stays.")
        stop = box.addButton("Stop and Close", QMessageBox.ButtonRole.AcceptRole)
        stop.setObjectName("stop_and_close")
        box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(stop)
        box.accepted.connect(self.confirmed)
        box.finished.connect(self._on_finished)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._box = box
        box.open()

    def _on_finished(self) -> None:
        self._box = None
