"""The end, in order: the window closes, the bridge ends its session and its loop, then the application goes."""

from __future__ import annotations

import logging
import signal
import socket
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSocketNotifier, QTimer, Signal, Slot

from gui.loop import LOST_SECONDS
from gui.runner import sentence

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from PySide6.QtWidgets import QApplication

    from gui.bridge import Bridge
    from gui.window import Window

logger = logging.getLogger(__name__)


class Quitter(QObject):
    """The order of the end: the window closes, the bridge ends its session and its loop, then the application goes.

    Signals:
        failed: A sentence about an exception that nobody caught, from whichever thread.
    """

    failed = Signal(str)

    def __init__(self, app: QApplication, window: Window, bridge: Bridge) -> None:
        super().__init__()
        self._app, self._window, self._bridge = app, window, bridge
        window.closed.connect(self._on_closed)
        bridge.stopped.connect(self._on_bridge_stopped)
        self.failed.connect(window.show_trouble)
        self._limit = QTimer(self)
        self._limit.setSingleShot(True)
        self._limit.timeout.connect(app.quit)
        # A signal from the terminal only writes a byte; Qt reads it in its own time, when Python may run.
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_signal)
        self._previous_wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._previous = {number: signal.signal(number, _ignore) for number in (signal.SIGINT, signal.SIGTERM)}

    def close(self) -> None:
        """Give the signals back."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_wakeup)
        self._notifier.setEnabled(False)
        self._reader.close()
        self._writer.close()

    def on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Slots cannot raise to anyone, so what they raise arrives here."""
        logger.error("uncaught", exc_info=(kind, error, trace))
        self.failed.emit(sentence(error))

    @Slot()
    def _on_signal(self) -> None:
        received = set(self._reader.recv(64))
        if received & {signal.SIGINT, signal.SIGTERM}:
            self._window.close_now()

    @Slot()
    def _on_closed(self) -> None:
        if not self._bridge.running:
            self._app.quit()
            return
        self._limit.start(round(LOST_SECONDS * 1000))
        self._bridge.shutdown()

    @Slot()
    def _on_bridge_stopped(self) -> None:
        if not self._window.isVisible():
            self._app.quit()


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """The wakeup byte is what counts."""
