"""Reading the bytes of parts where a node has them: as files of the store, or cut out of a full copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from runtime.errors import PomonaError
from runtime.models.manifest import MANIFEST_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.models.manifest import Manifest
    from runtime.models.parts import Part


class PartReader(Protocol):
    """Somewhere a model's parts can be read."""

    def holds(self, part: Part) -> bool:
        """Whether the whole part is here."""

    def read(self, part: Part, begin: int, end: int) -> bytes:
        """Bytes ``[begin, end)`` of the part's file. Raises :class:`PomonaError`."""

    def read_into(self, part: Part, begin: int, buffer: memoryview) -> None:
        """The same, as many as fill ``buffer``: fresh memory for each piece would cost as much as reading it."""


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
        return _read(self, part, begin, end)

    def read_into(self, part: Part, begin: int, buffer: memoryview) -> None:
        """Bytes of the part's file."""
        _fill(self._folder / part.file_name, begin, buffer)


class FullFolder:
    """A full copy that is not ours, such as a snapshot in the Hugging Face cache: only ever read."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder = folder
        self._file_bytes = {file.name: file.byte_count for file in manifest.weight_files}

    def holds(self, part: Part) -> bool:
        """Everything is here, unless someone has taken a file away, or cut it short."""
        return all(self._is_whole(name) for name in {segment.file for segment in part.segments})

    def _is_whole(self, name: str) -> bool:
        try:
            return (self._folder / name).stat().st_size == self._file_bytes.get(name)
        except OSError:
            return False

    def read(self, part: Part, begin: int, end: int) -> bytes:
        """Bytes of the part's file, put together."""
        return _read(self, part, begin, end)

    def read_into(self, part: Part, begin: int, buffer: memoryview) -> None:
        """Bytes of the part's file, put together."""
        place = 0
        for piece in part.pieces(begin, begin + len(buffer)):
            size = len(piece) if isinstance(piece, bytes) else piece.end - piece.begin
            target = buffer[place : place + size]
            if isinstance(piece, bytes):
                target[:] = piece
            else:
                _fill(self._folder / piece.file, piece.begin, target)
            place += size


def reader_of(folder: Path, manifest: Manifest) -> PartReader:
    """The reader for a model folder of either kind."""
    return SplitFolder(folder) if (folder / MANIFEST_NAME).is_file() else FullFolder(folder, manifest)


def _read(reader: PartReader, part: Part, begin: int, end: int) -> bytes:
    found = bytearray(end - begin)
    reader.read_into(part, begin, memoryview(found))
    return bytes(found)


def _fill(path: Path, begin: int, buffer: memoryview) -> None:
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(begin)
            place = 0
            while place < len(buffer):
                count = file.readinto(buffer[place:])
                if not count:
                    raise PomonaError(f"The model file {path} ends too early: fetch the model again.")
                place += count
    except OSError as error:
        raise PomonaError(f"The model file {path} cannot be read ({error.strerror}).") from error
