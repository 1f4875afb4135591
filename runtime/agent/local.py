"""Where this machine's own agent listens: a note in its data folder, for the window and the commands.

The note is no secret and proves nothing: whoever follows it checks that our own certificate answers.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import msgspec

from discovery.files import locked, read_small, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_NAME = "agent.json"
_MAX_FILE_BYTES = 1024


class _Note(msgspec.Struct, frozen=True):
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    pid: int


@contextmanager
def noted(folder: Path, port: int) -> Iterator[None]:
    """Leave the note for the time of the ``with`` block."""
    note = _Note(port, os.getpid())
    path = folder / FILE_NAME
    with locked(folder):
        write_private(path, msgspec.json.encode(note))
    try:
        yield
    finally:
        with locked(folder):
            if _read(path) == note:  # otherwise another agent has been started since
                path.unlink()


def local_port(folder: Path) -> int | None:
    """Where the agent of ``folder`` listens on the loopback, as far as the note tells; None without one."""
    note = _read(folder / FILE_NAME)
    return note.port if note is not None else None


def _read(path: Path) -> _Note | None:
    try:
        return msgspec.json.decode(read_small(path, _MAX_FILE_BYTES), type=_Note)
    except (FileNotFoundError, ValueError, RecursionError):
        return None
