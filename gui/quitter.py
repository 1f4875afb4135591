"""The end, in order: the window closes, the bridge ends its session and its loop, then the application goes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from gui.loop import LOST_SECONDS
from gui.runner import sentence

if TYPE_CHECKING:
    from types import TracebackType

    from PySide6.QtWidgets import QApplication

    from gui.bridge import Bridge
    from gui.terminal import TerminalSignals
    from gui.window import Window

logger = logging.getLogger(__name__)


class Quitter(QObject):
    """The order of the end: the window closes, the bridge ends its session and its loop, then the application goes.

    Signals:
        failed: A sentence about an exception that nobody caught, from whichever thread.
    """

    failed = Signal(str)

    def __init__(self, app: QApplication, window: Window, bridge: Bridge, signals: TerminalSignals) -> None:
        super().__init__()
        self._app, self._window, self._bridge = app, window, bridge
        window.closed.connect(self._on_closed)
        bridge.stopped.connect(self._on_bridge_stopped)
        self.failed.connect(window.show_trouble)
        self._limit = QTimer(self)
        self._limit.setSingleShot(True)
        self._limit.timeout.connect(app.quit)
        signals.asked_to_end.connect(window.close_now)
        signals.listen()

    def on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Slots cannot raise to anyone, so what they raise arrives here."""
        logger.error("uncaught", exc_info=(kind, error, trace))
        self.failed.emit(sentence(error))

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
