"""Real MLX rings for tests: processes that start once and then do one job after another."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from runtime.engine.tensor_group import free_port

ANSWER_SECONDS = 60


class Ring:
    """``size`` ranks. A job that fails, hangs or kills a rank ends all of them; the next one starts them anew."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._ranks: list[subprocess.Popen[str]] = []
        self._hosts: Path | None = None
        """A folder for the file that tells the ranks of each other."""

    def compare(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        """How far a tiny model of ``config`` is from the whole when the ranks share it; one answer from each."""
        return self._ask({"config": config})

    def load(self, folder: Path) -> list[dict[str, Any]]:
        """What each rank holds of the model in ``folder``, loaded as a worker does: by a process that is new."""
        self.close()  # so that nothing of an earlier model is counted
        return self._ask({"folder": str(folder)})

    def close(self) -> None:
        """End the processes."""
        self._kill()
        for rank in self._ranks:
            rank.wait()
            for pipe in (rank.stdin, rank.stdout):
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()  # type: ignore[union-attr]
        self._ranks = []
        if self._hosts is not None:
            shutil.rmtree(self._hosts)
            self._hosts = None

    def _ask(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        if not self._ranks:
            self._start()
        timer = threading.Timer(ANSWER_SECONDS, self._kill)
        timer.start()
        try:
            lines = self._exchange(json.dumps(job) + "\n")
        except BrokenPipeError:
            lines = [""]
        finally:
            timer.cancel()
            timer.join()
        answers = [json.loads(line) if line else {"error": "a rank died or hung"} for line in lines]
        if any("error" in answer for answer in answers):
            self.close()  # ranks may be waiting for each other
        return answers

    def _exchange(self, line: str) -> list[str]:
        for rank in self._ranks:
            rank.stdin.write(line)  # type: ignore[union-attr]
            rank.stdin.flush()  # type: ignore[union-attr]
        return [rank.stdout.readline() for rank in self._ranks]  # type: ignore[union-attr]

    def _kill(self) -> None:
        for rank in self._ranks:
            rank.kill()

    def _start(self) -> None:
        self._hosts = Path(tempfile.mkdtemp(prefix="pomona-test-ring-"))
        hosts = self._hosts / "hosts.json"
        hosts.write_text(json.dumps([[f"127.0.0.1:{free_port('127.0.0.1')}"] for _ in range(self.size)]))
        for rank in range(self.size):
            environment = os.environ | {"MLX_RANK": str(rank), "MLX_HOSTFILE": str(hosts)}
            command = [sys.executable, "-m", "tests.runtime.engine.ring_rank"]
            self._ranks.append(
                subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
