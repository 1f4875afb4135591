"""A note that a process leaves in a folder while it runs, for whoever comes to find it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from discovery.files import locked, read_small, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

N = TypeVar("N", bound=msgspec.Struct)


class NoteFile(Generic[N]):
    """Notes of one kind, in the file ``name`` of any folder; its owner alone can read it."""

    def __init__(self, name: str, kind: type[N], limit_bytes: int) -> None:
        self.name = name
        self._limit_bytes = limit_bytes
        self._decoder = msgspec.json.Decoder(kind)

    @contextmanager
    def left(self, folder: Path, note: N) -> Iterator[None]:
        """Leave the note for the time of the ``with`` block. Raises :class:`OSError`."""
        path = folder / self.name
        with locked(folder):
            write_private(path, msgspec.json.encode(note))
        try:
            yield
        finally:
            with locked(folder):
                if self.read(folder) == note:  # otherwise another process has left its own since
                    path.unlink()

    def read(self, folder: Path) -> N | None:
        """The newest note, whose process may be gone; None without one that can be read."""
        try:
            return self._decoder.decode(read_small(folder / self.name, self._limit_bytes))
        except (FileNotFoundError, ValueError, RecursionError):
            return None
