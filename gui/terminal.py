"""Signals from the terminal: kept from the first moment, told once there is someone who can end things in order."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot

if TYPE_CHECKING:
    from types import FrameType

_ENDS = (signal.SIGINT, signal.SIGTERM)


class TerminalSignals(QObject):
    """Takes SIGINT and SIGTERM as long as it lives, until `close`.

    Python would raise KeyboardInterrupt in whichever slot runs, where Qt swallows it. Here a signal only writes a
    byte, which waits for `listen` and is then read in Qt's own time.

    Signals:
        asked_to_end: One of the two came.
    """

    asked_to_end = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._pipe = self._reader, self._writer = os.pipe()
        for end in self._pipe:
            os.set_blocking(end, False)
        self._notifier = QSocketNotifier(self._reader, QSocketNotifier.Type.Read, self)
        self._notifier.setEnabled(False)
        self._notifier.activated.connect(self._on_byte)
        self._previous_wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._previous = {number: signal.signal(number, _ignore) for number in _ENDS}

    def listen(self) -> None:
        """Tell of signals from now on, those that came before included."""
        self._notifier.setEnabled(True)

    def close(self) -> None:
        """Give the signals back."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_wakeup)
        self._notifier.setEnabled(False)
        for end in self._pipe:
            os.close(end)

    @Slot()
    def _on_byte(self) -> None:
        if not set(_ENDS).isdisjoint(os.read(self._reader, 64)):
            self.asked_to_end.emit()


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """The wakeup byte is what counts."""
