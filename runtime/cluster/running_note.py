"""Where a session listens that outlives its window: a note in the data folder, for the next window.

It holds the session's key, so its owner alone can read it. A note whose process is gone is no session.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import msgspec

from runtime.cluster.nodes import KnownNode  # msgspec resolves the annotation when it decodes
from runtime.note_file import NoteFile
from runtime.planning.values import Plan  # msgspec resolves the annotation when it decodes

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path


class RunningNote(msgspec.Struct, frozen=True):
    """A session that runs, or is about to."""

    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    key: str
    pid: int
    model_folder: str
    plan: Plan
    """With which it started; its own word tells what runs now."""
    nodes: tuple[KnownNode, ...]


SESSION_FILE = NoteFile("session.json", RunningNote, limit_bytes=4 << 20)


def noted_session(folder: Path, note: RunningNote) -> AbstractContextManager[None]:
    """Leave the note for the time of the ``with`` block. Raises :class:`OSError`."""
    return SESSION_FILE.left(folder, note)


def running_session(folder: Path) -> RunningNote | None:
    """The session that runs from ``folder``, if its process is there."""
    note = SESSION_FILE.read(folder)
    return note if note is not None and _lives(note.pid) else None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the number belongs to somebody else's process now
        return False
    return True
