"""What workers wrote while they ran: a file for each rank of each job, the last ones kept, and read by controllers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from discovery.trust import Role
from runtime.agent.access import Route

if TYPE_CHECKING:
    from pathlib import Path

LOGS_PATH = "/v1/logs"
TAIL_BYTES = 48 << 10
"""Of each rank, the end."""
RANKS_LIMIT = 8
KEPT_FILES = 60
NAME_LENGTH = 16
"""Of a job's id, what its files are called by."""
ANSWER_BYTES = 2 * RANKS_LIMIT * TAIL_BYTES
"""No answer is longer."""


class RankLog(msgspec.Struct, frozen=True):
    """The end of what one worker wrote."""

    name: Annotated[str, Meta(max_length=100)]
    """Of its job and rank."""
    text: Annotated[str, Meta(max_length=TAIL_BYTES)]


class JobSeen(msgspec.Struct, frozen=True):
    """A job of which there are logs."""

    job: Annotated[str, Meta(max_length=NAME_LENGTH)]
    written_seconds: float
    """When a rank of it wrote last, since 1970."""


class NodeLogs(msgspec.Struct, frozen=True):
    """Of one job on a node, the ranks that wrote last first."""

    ranks: Annotated[tuple[RankLog, ...], Meta(max_length=RANKS_LIMIT)] = ()
    jobs: Annotated[tuple[JobSeen, ...], Meta(max_length=KEPT_FILES)] = ()
    """All of which there are logs, the newest first."""


def log_path(folder: Path, job: str, rank: int) -> Path:
    """Where a worker's log goes."""
    return folder / f"{job[:NAME_LENGTH]}-rank{rank}.log"


def read_logs(folder: Path, job: str = "") -> NodeLogs:
    """Of ``job``, or of the one that wrote last. Raises :class:`OSError`."""
    by_job: dict[str, list[Path]] = {}
    for file in _by_age(folder):
        by_job.setdefault(_job_of(file), []).append(file)
    jobs = tuple(JobSeen(name, files[0].stat().st_mtime) for name, files in by_job.items())
    ranks = by_job.get(job[:NAME_LENGTH] or next(iter(by_job), ""), [])[:RANKS_LIMIT]
    return NodeLogs(tuple(RankLog(file.stem, _tail(file)) for file in ranks), jobs[:KEPT_FILES])


def drop_old_logs(folder: Path) -> None:
    """Keep the newest alone. Raises :class:`OSError`."""
    for file in _by_age(folder)[KEPT_FILES:]:
        file.unlink(missing_ok=True)


class LogRoutes:
    """Serves the logs in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.routes = (Route("GET", LOGS_PATH, Role.CONTROLLER, self._read),)

    async def _read(self, request: web.Request) -> web.StreamResponse:
        logs = await asyncio.to_thread(read_logs, self._folder, request.query.get("job", ""))
        return web.Response(body=msgspec.json.encode(logs), content_type="application/json")


def _job_of(file: Path) -> str:
    return file.name.partition("-")[0]


def _by_age(folder: Path) -> list[Path]:
    """The newest first; none if nothing was ever written."""
    return sorted(folder.glob("*-rank*.log"), key=lambda file: file.stat().st_mtime, reverse=True)


def _tail(file: Path) -> str:
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - TAIL_BYTES))
        return stream.read(TAIL_BYTES).decode(errors="replace")
