"""Uses the window as a person would, once: starts the model, asks, reads the answer, closes the window.

For whoever wants to know whether an installation works (``pomona demo --self-test``), and for the test of the app.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from resources.processes import age_seconds

if TYPE_CHECKING:
    from gui.window import Window

QUESTION = "What is the capital of France?"
LIMIT_SECONDS = 180.0
_LOOK_MS = 100
_NODES_SECONDS = 2.0
"""Nodes come one by one; when none has come for so long, they are all there."""


class SelfTest(QObject):
    """Looks every tenth of a second what can be done next; leaves one JSON object on standard output.

    ``status`` is that of the process: 0 after an answer, 1 otherwise.
    """

    def __init__(self, window: Window, limit_seconds: float = LIMIT_SECONDS) -> None:
        super().__init__(window)
        self._window = window
        self._deadline = time.monotonic() + limit_seconds
        self._window_seconds = self._window_cpu_seconds = 0.0
        self._asked = False
        self._nodes: tuple[str, ...] = ()
        self._nodes_since = time.monotonic()
        self.status = 1
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_MS)
        self._timer.timeout.connect(self._on_look)

    def start(self) -> None:
        """Call it when the window is shown."""
        self._window_seconds, self._window_cpu_seconds = age_seconds(), time.process_time()
        self._timer.start()

    def _on_look(self) -> None:
        window = self._window
        composer = window.chat.composer
        exchange = window.chat.exchanges[-1] if window.chat.exchanges else None
        if window.banner.words:
            self._end(error=window.banner.words)
        elif exchange is not None and not exchange.open:
            self.status = 0 if exchange.finished is not None and exchange.answer.strip() else 1
            self._end(answer=exchange.answer.strip(), error=exchange.error or "")
        elif time.monotonic() > self._deadline:
            self._end(error="There was no answer in time.")
        elif window.menus.start.isEnabled():
            if self._nodes_are_there():
                window.menus.start.trigger()
        elif not self._asked and not window.chat.answering:
            composer.box.setPlainText(QUESTION)
            if composer.button.isEnabled():
                self._asked = True
                composer.button.click()

    def _nodes_are_there(self) -> bool:
        found = tuple(node.resources.name for node in self._window.store.nodes)
        if found != self._nodes:
            self._nodes, self._nodes_since = found, time.monotonic()
        return time.monotonic() - self._nodes_since > _NODES_SECONDS

    def _end(self, answer: str = "", error: str = "") -> None:
        self._timer.stop()
        found = {
            "answer": answer,
            "error": error,
            "nodes": self._nodes,
            "window_seconds": round(self._window_seconds, 3),
            "window_cpu_seconds": round(self._window_cpu_seconds, 3),
            "answer_seconds": round(age_seconds(), 3),
        }
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
        self._window.close_now()
