"""Small files that nobody else may read and that are never seen half written."""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_log = logging.getLogger(__name__)


def private_folder(folder: Path) -> None:
    """Make ``folder`` if it is not there, and have its owner alone look into it. Raises :class:`OSError`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes that want the same out of ``folder`` for the time of the ``with`` block."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # ends with the descriptor, so a crash leaves no lock behind
        yield
    finally:
        os.close(descriptor)


def read_small(path: Path, limit_bytes: int) -> bytes:
    """A file's content. Raises :class:`ValueError` for a larger one, and :class:`OSError`."""
    with path.open("rb") as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise ValueError(f"more than {limit_bytes} bytes")
    return content


def write_private(path: Path, content: bytes) -> None:
    """Replace a file in one step, readable for its owner alone. The folder must be locked. Raises :class:`OSError`."""
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123  of a descriptor
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def set_aside(path: Path, why: str, reason: str) -> None:
    """Rename a file that cannot be used, so that nothing is lost; says so in the log."""
    if path.exists():
        aside = path.with_suffix(f".{why}{path.suffix}")
        path.replace(aside)
        _log.warning("%s is moved to %s: %s", path, aside.name, reason)
