"""The question before a window closes on a model that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QMessageBox

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

_ENDING = "All workers end; the text of the chats stays."
_LEAVING = f"{_ENDING} Kept running, the model answers programs, and the next window finds it."
_QUESTION = "The model is running. Stop it and close the window?"


class CloseQuestion(QObject):
    """Asked once at a time, as a sheet.

    Signals:
        confirmed: Stop and close.
        leave_wanted: Close, and let the model run on.
    """

    confirmed = Signal()
    leave_wanted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._parent = parent
        self._box: QMessageBox | None = None

    def ask(self, *, can_leave: bool) -> None:
        """Show it, unless it is there. ``can_leave``: whether the model can run on without the window."""
        if self._box is not None:
            return
        box = QMessageBox(QMessageBox.Icon.Question, "Pomona", _QUESTION, parent=self._parent)
        box.setInformativeText(_LEAVING if can_leave else _ENDING)
        stop = box.addButton("Stop and Close", QMessageBox.ButtonRole.AcceptRole)
        stop.setObjectName("stop_and_close")
        if can_leave:
            leave = box.addButton("Keep It Running", QMessageBox.ButtonRole.DestructiveRole)
            leave.setObjectName("keep_running")
            leave.clicked.connect(self.leave_wanted)
        box.addButton(QMessageBox.StandardButton.Cancel).setIcon(QIcon())  # Fusion's is a red cross
        box.setDefaultButton(stop)
        box.accepted.connect(self.confirmed)
        box.finished.connect(self._on_finished)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._box = box
        box.open()

    def _on_finished(self) -> None:
        self._box = None
