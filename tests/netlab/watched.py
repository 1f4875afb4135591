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

WAIT_SECONDS = 60.0
"""A test fails after so long; what is promised is asserted beside."""
PROMISED_SECONDS = 3.0
SLOW_MACHINE = 10.0
"""How much longer it may take where two cores carry every host of a lab and whatever else runs."""
LIMIT_SECONDS = PROMISED_SECONDS * SLOW_MACHINE


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
        found = self.within(WAIT_SECONDS, enough)
        assert found, f"{self.host.name} said only {self.events}"
        return float(found["seconds"])

    def within(self, seconds: float, enough: Callable[[list[Event]], bool]) -> Event | None:
        """The event that made it enough, if that comes within a time."""
        deadline = time.monotonic() + seconds
        known = 1
        with self._news:
            while True:
                while known <= len(self.events):
                    if enough(self.events[:known]):
                        return self.events[known - 1]
                    known += 1
                assert not self._over, f"{self.host.name} ended; it said {self.events}"
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
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
