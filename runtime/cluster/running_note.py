"""Where a session listens that outlives its window: a note in the data folder, for the next window.

It holds the session's key, so its owner alone can read it. A note whose process is gone is no session.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import msgspec

from discovery.files import locked, read_small, write_private
from runtime.cluster.nodes import KnownNode  # msgspec resolves the annotation when it decodes
from runtime.planning.plan import Plan  # msgspec resolves the annotation when it decodes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_NAME = "session.json"
_MAX_FILE_BYTES = 4 << 20


class RunningNote(msgspec.Struct, frozen=True):
    """A session that runs, or is about to."""

    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    key: str
    pid: int
    model_folder: str
    plan: Plan
    """With which it started; its own word tells what runs now."""
    nodes: tuple[KnownNode, ...]


@contextmanager
def noted_session(folder: Path, note: RunningNote) -> Iterator[None]:
    """Leave the note for the time of the ``with`` block. Raises :class:`OSError`."""
    path = folder / FILE_NAME
    with locked(folder):
        write_private(path, msgspec.json.encode(note))
    try:
        yield
    finally:
        with locked(folder):
            if _read(path) == note:  # otherwise another session has been started since
                path.unlink()


def running_session(folder: Path) -> RunningNote | None:
    """The session that runs from ``folder``, if its process is there."""
    note = _read(folder / FILE_NAME)
    return note if note is not None and _lives(note.pid) else None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the number belongs to somebody else's process now
        return False
    return True


def _read(path: Path) -> RunningNote | None:
    try:
        return msgspec.json.decode(read_small(path, _MAX_FILE_BYTES), type=RunningNote)
    except (FileNotFoundError, ValueError, RecursionError):
        return None
