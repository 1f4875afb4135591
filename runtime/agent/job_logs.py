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


class RankLog(msgspec.Struct, frozen=True):
    """The end of what one worker wrote."""

    name: Annotated[str, Meta(max_length=100)]
    """Of its job and rank."""
    text: Annotated[str, Meta(max_length=TAIL_BYTES)]


class NodeLogs(msgspec.Struct, frozen=True):
    """Of the newest job on a node, the ranks that wrote last first."""

    ranks: Annotated[tuple[RankLog, ...], Meta(max_length=RANKS_LIMIT)] = ()


def log_path(folder: Path, job: str, rank: int) -> Path:
    """Where a worker's log goes."""
    return folder / f"{job[:16]}-rank{rank}.log"


def newest_logs(folder: Path) -> NodeLogs:
    """Of the job that wrote last. Raises :class:`OSError`."""
    files = _by_age(folder)
    job = files[0].name.partition("-")[0] if files else ""
    ranks = [file for file in files if file.name.startswith(f"{job}-")][:RANKS_LIMIT]
    return NodeLogs(tuple(RankLog(file.stem, _tail(file)) for file in ranks))


def drop_old_logs(folder: Path) -> None:
    """Keep the newest alone. Raises :class:`OSError`."""
    for file in _by_age(folder)[KEPT_FILES:]:
        file.unlink(missing_ok=True)


class LogRoutes:
    """Serves the logs in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.routes = (Route("GET", LOGS_PATH, Role.CONTROLLER, self._newest),)

    async def _newest(self, _request: web.Request) -> web.StreamResponse:
        logs = await asyncio.to_thread(newest_logs, self._folder)
        return web.Response(body=msgspec.json.encode(logs), content_type="application/json")


def _by_age(folder: Path) -> list[Path]:
    """The newest first; none if nothing was ever written."""
    return sorted(folder.glob("*-rank*.log"), key=lambda file: file.stat().st_mtime, reverse=True)


def _tail(file: Path) -> str:
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - TAIL_BYTES))
        return stream.read(TAIL_BYTES).decode(errors="replace")
