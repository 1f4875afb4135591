"""Where this machine's own agent listens: a note in its data folder, for the window and the commands.

The note is no secret and proves nothing: whoever follows it checks that our own certificate answers.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import msgspec

from runtime.note_file import NoteFile

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path


class _Note(msgspec.Struct, frozen=True):
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    pid: int


_FILE = NoteFile("agent.json", _Note, limit_bytes=1024)


def noted(folder: Path, port: int) -> AbstractContextManager[None]:
    """Leave the note for the time of the ``with`` block."""
    return _FILE.left(folder, _Note(port, os.getpid()))


def local_port(folder: Path) -> int | None:
    """Where the agent of ``folder`` listens on the loopback, as far as the note tells; None without one."""
    note = _FILE.read(folder)
    return note.port if note is not None else None
