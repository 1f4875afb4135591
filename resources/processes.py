"""Processes of this machine that concern Pomona: workers that were left behind, and who holds a port."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from resources.parse import tidy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FIRST_PROCESS = 1


def orphan_workers() -> Iterator[int]:
    """Ids of the processes that run ``pomona worker`` and whose parent is none of Python's any more.

    A worker is started by an agent, or by a check or benchmark: Python all of them. When its parent is gone, the
    system makes it a child of its first process, or of what stands in for that (systemd).
    """
    for process in psutil.process_iter():
        try:
            if _is_worker(process.cmdline()) and not _is_python(process.parent()):
                yield process.pid
        except psutil.Error:  # gone meanwhile, or someone else's: no business of ours
            continue


def is_stopped(process_id: int) -> bool:
    """Whether a process is there and a signal (SIGSTOP) keeps it from running."""
    try:
        return bool(psutil.Process(process_id).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def work_done(process_id: int) -> tuple[float, int] | None:
    """Seconds of processor time that a process has had, and a count that grows with what it reads.

    The count is of bytes read, or of pages brought in where the system counts no bytes (macOS). None when it is gone.
    """
    try:
        process = psutil.Process(process_id)
        times = process.cpu_times()
        if sys.platform == "darwin":
            reads = process.memory_info().pfaults
        else:
            reads = process.io_counters().read_chars
        return times.user + times.system, reads
    except psutil.Error:
        return None


def port_holder(port: int) -> str | None:
    """Who listens on TCP ``port``, if the system tells; macOS tells of the person's own processes alone."""
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status != psutil.CONN_LISTEN or not connection.laddr or connection.pid is None:
                continue
            if connection.laddr.port == port:
                return f"{tidy(psutil.Process(connection.pid).name())} (process {connection.pid})"
    except psutil.Error:
        pass  # the port is as taken without a name
    return None


def age_seconds() -> float:
    """How long this process has been there, its own start included."""
    return time.time() - psutil.Process().create_time()


def _is_worker(words: Sequence[str]) -> bool:
    """``python -m pomona worker``, or ``/somewhere/pomona worker``, which in an app is ``Pomona``."""
    if "worker" not in words[1:]:
        return False
    front = words[: words.index("worker", 1)]
    return list(front[-2:]) == ["-m", "pomona"] or front[-1].lower().endswith("/pomona")


def _is_python(process: psutil.Process | None) -> bool:
    if process is None or process.pid == _FIRST_PROCESS:
        return False
    words = process.cmdline()
    return bool(words) and Path(words[0]).name.lower().startswith(("python", "pomona"))
