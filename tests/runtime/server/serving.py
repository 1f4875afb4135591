"""``pomona serve`` as a process, and what its clients need."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "a-key-of-the-tests"
QUESTION = "What is the capital of France?"
PLACE = {
    "type": "object",
    "properties": {"place": {"type": "string", "enum": ["Paris", "Rome"]}},
    "required": ["place"],
    "additionalProperties": False,
}
"""What a tool of the tests takes."""
WAITING = 6
"""Requests that the server of the tests takes at one time."""
_START_SECONDS = 240


@dataclass(frozen=True)
class Serving:
    """A server that is ready."""

    process: subprocess.Popen[str]
    address: str
    model: str

    def get(self, path: str) -> httpx2.Response:
        return httpx2.get(f"{self.address.removesuffix('/v1')}{path}", headers={"Authorization": f"Bearer {KEY}"})

    def post(self, path: str, body: Any) -> httpx2.Response:
        url = f"{self.address}{path}"
        return httpx2.post(url, json=body, headers={"Authorization": f"Bearer {KEY}"}, timeout=600)

    def health(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get("/health").json()
        return found

    def wait_until_idle(self, within_seconds: float = 20) -> None:
        """Every slot is free."""
        deadline = time.monotonic() + within_seconds
        while self.health()["active_requests"]:
            assert time.monotonic() < deadline, "requests go on whose clients have left"
            time.sleep(0.05)

    def workers(self) -> list[psutil.Process]:
        found = psutil.Process(self.process.pid).children(recursive=True)
        return [process for process in found if "worker" in process.cmdline()]


@contextmanager
def serving(model: Path | str, *arguments: str) -> Iterator[Serving]:
    """A model on two virtual nodes, by the command line, from ready to its end by a signal."""
    command = [sys.executable, "-P", "-m", "pomona", "serve", str(model), "--port", "0", "--api-key", KEY, *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    said: list[str] = []
    assert process.stderr is not None
    reader = threading.Thread(target=lambda: said.extend(iter(process.stderr.readline, "")))  # type: ignore[union-attr]
    reader.start()
    watch = threading.Timer(_START_SECONDS, process.kill)
    watch.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        watch.cancel()
        found = re.search(r"(\S+) is ready at (http://\S+)", line)
        assert found, f"{line}\n{''.join(said)}"
        yield Serving(process, found[2], found[1])
    finally:
        watch.cancel()
        process.terminate()
        process.wait(30)
        reader.join()
        assert process.stdout is not None
        process.stdout.close()
        process.stderr.close()
