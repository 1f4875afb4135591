"""A process of the lab that tells what happens to it in JSON lines, and a test that waits for that."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.netlab.lab import Host

Event = dict[str, Any]

WAIT_SECONDS = 40.0
"""A test fails after so long; what is promised is asserted beside."""


class Watched:
    """Runs a module on ``host`` and keeps what it says, in order."""

    def __init__(self, host: Host, module: str, *words: str) -> None:
        self.host = host
        self.started_seconds = time.monotonic()
        self.process = host.python("-m", module, *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.events: list[Event] = []
        self._news = threading.Condition()
        self._over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def until(self, enough: Callable[[list[Event]], bool]) -> float:
        """Wait; returns the time, by the process's own clock, of the event that made it enough."""
        deadline = time.monotonic() + WAIT_SECONDS
        known = 0
        with self._news:
            while True:
                for known in range(known, len(self.events) + 1):  # noqa: B020  goes on where it was
                    if enough(self.events[:known]):
                        return float(self.events[known - 1]["seconds"])
                assert not self._over, f"{self.host.name} ended; it said {self.events}"
                left = deadline - time.monotonic()
                assert left > 0, f"{self.host.name} said only {self.events}"
                self._news.wait(left)

    def ask_to_end(self) -> None:
        """Close its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def end(self) -> None:
        """Ask, and wait until the process and the thread that reads it are gone."""
        self.ask_to_end()
        self.process.wait(WAIT_SECONDS)
        self._reader.join()

    def kill(self) -> None:
        """As a crash."""
        self.host.kill(self.process)
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.events.append(json.loads(line))
                self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()
