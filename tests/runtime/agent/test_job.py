"""A job that lasts: workers come and go on a node as splits change and nodes are lost."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from runtime.agent import job as job_module
from runtime.agent.job import Job
from runtime.agent.messages import RankExited
from runtime.engine.orders import Launch

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Brief:
    """A worker that ends as soon as it has started."""

    def __init__(self, *_: object) -> None:
        self.is_stopped = self.is_running = False

    async def start(self) -> None: ...

    async def wait(self) -> int:
        return 1


async def test_a_job_may_start_any_number_of_workers_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setattr(job_module, "WorkerProcess", Brief)
    nothing: Any = SimpleNamespace(certificate_path="", key_path="")
    job = Job(nothing, nothing, lambda _host: True, tmp_path)
    for rank in range(200):
        await job._start(Launch("job", bytes(32), "127.0.0.1", str(tmp_path), rank, 0, 10, 0, 3, 0, 1))
        await asyncio.gather(*job._waits)
    said = [job._outgoing.get_nowait() for _ in range(job._outgoing.qsize())]
    assert said == [RankExited(rank, 1) for rank in range(200)]
