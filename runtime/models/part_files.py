"""Reading the bytes of parts where a node has them: as files of the store, or cut out of a full copy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.models.parts import Part


class PartReader(Protocol):
    """Somewhere a model's parts can be read."""

    def holds(self, part: Part) -> bool:
        """Whether the whole part is here."""

    def read(self, part: Part, begin: int, end: int) -> bytes:
        """Bytes ``[begin, end)`` of the part's file. Raises :class:`PomonaError`."""


class SplitFolder:
    """A folder of the store: each part is a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def holds(self, part: Part) -> bool:
        """Only whole parts get their final names; a file of another size has been damaged since."""
        try:
            return (self._folder / part.file_name).stat().st_size == part.byte_count
        except OSError:
            return False

    def read(self, part: Part, begin: int, end: int) -> bytes:
        """Bytes of the part's file."""
        return _read(self._folder / part.file_name, begin, end)


class FullFolder:
    """A full copy that is not ours, such as a snapshot in the Hugging Face cache: only ever read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def holds(self, part: Part) -> bool:
        """Everything is here, unless someone has taken a file away."""
        return all((self._folder / segment.file).is_file() for segment in part.segments)

    def read(self, part: Part, begin: int, end: int) -> bytes:
        """Bytes of the part's file, put together."""
        return b"".join(
            piece if isinstance(piece, bytes) else _read(self._folder / piece.file, piece.begin, piece.end)
            for piece in part.pieces(begin, end)
        )


def _read(path: Path, begin: int, end: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            found = bytearray()
            while len(found) < end - begin:
                more = os.pread(descriptor, end - begin - len(found), begin + len(found))
                if not more:
                    raise PomonaError(f"The model file {path} ends too early: fetch the model again.")
                if not found and len(more) == end - begin:
                    return more
                found += more
            return bytes(found)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise PomonaError(f"The model file {path} cannot be read ({error.strerror}).") from error
