"""A part on its way: a file with the chunks that came, in any order, and a journal of what they have to be.

A line of the journal is a chunk's number and its SHA-256. It is written after the chunk, and when a fetch goes on,
each chunk is read and compared again. So it does not matter what a crash or a lost reboot left of either file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import threading
from typing import TYPE_CHECKING

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runtime.models.parts import Part


class ChunkWriter:
    """Writes a chunk piece by piece, each while it is still in the processor's cache.

    A thread may still hold it when its fetch was cancelled, so after :meth:`close` nothing is written any more.
    """

    def __init__(self, part: Part, path: Path, begin: int, end: int) -> None:
        self._part = part
        self._place = begin
        self._end = end
        self._lock = threading.Lock()
        with written(part):
            self._descriptor = os.open(path, os.O_WRONLY)

    @property
    def missing_bytes(self) -> int:
        """What the chunk still lacks."""
        return self._end - self._place

    def write(self, piece: bytes | memoryview) -> None:
        """The next bytes. Raises :class:`PomonaError` if the disk does not take them."""
        view = memoryview(piece)
        with self._lock, written(self._part):
            if self._descriptor < 0 or len(view) > self.missing_bytes:
                raise ValueError(f"{len(view)} bytes of {self._part.name} have no place")
            while view:
                count = os.pwrite(self._descriptor, view, self._place)
                view = view[count:]
                self._place += count

    def close(self) -> None:
        """No more bytes."""
        with self._lock:
            os.close(self._descriptor)
            self._descriptor = -1


class PartialPart:
    """The part at ``path``, and ``path`` with ``.journal`` behind it. Holds what an earlier fetch left."""

    def __init__(self, part: Part, path: Path) -> None:
        self.part = part
        self._path = path
        self._journal = path.with_name(f"{path.name}.journal")
        self._hashes: dict[int, bytes] = self._still_right()
        with written(part):
            path.touch()
            self._rewrite()

    @property
    def missing(self) -> list[int]:
        """Chunks that have not come yet."""
        return [index for index in range(self.part.chunk_count) if index not in self._hashes]

    @property
    def done_bytes(self) -> int:
        """Bytes of the chunks that came."""
        return sum(end - begin for begin, end in map(self.part.chunk, self._hashes))

    @property
    def hashes(self) -> list[bytes]:
        """Of all chunks, once none is missing."""
        return [self._hashes[index] for index in range(self.part.chunk_count)]

    def writer(self, index: int) -> ChunkWriter:
        """Takes the bytes of a chunk, which counts only once :meth:`keep` is called. To be closed."""
        return ChunkWriter(self.part, self._path, *self.part.chunk(index))

    def keep(self, index: int, digest: bytes) -> None:
        """A chunk that was written is whole and checked. Raises :class:`PomonaError` if the disk does not take that."""
        with written(self.part), self._journal.open("a") as journal:
            journal.write(f"{index} {digest.hex()}\n")
        self._hashes[index] = digest

    def discard_journal(self) -> None:
        """After the part got its name."""
        self._journal.unlink(missing_ok=True)

    def _rewrite(self) -> None:
        lines = "".join(f"{index} {digest.hex()}\n" for index, digest in sorted(self._hashes.items()))
        self._journal.write_text(lines)

    def _still_right(self) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        try:
            lines = self._journal.read_text().splitlines()
            with self._path.open("rb") as file:
                for line in lines:
                    number, _, digest = line.partition(" ")
                    if not number.isdecimal() or int(number) >= self.part.chunk_count:
                        continue
                    begin, end = self.part.chunk(int(number))
                    file.seek(begin)
                    if hashlib.sha256(file.read(end - begin)).hexdigest() == digest:
                        found[int(number)] = bytes.fromhex(digest)
        except (OSError, UnicodeDecodeError):
            return found
        return found


@contextlib.contextmanager
def written(part: Part) -> Iterator[None]:
    """What the disk does not take is said: :class:`PomonaError` instead of :class:`OSError`."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise PomonaError(
                f"The disk is full, so {part.name} could not be kept: make room and fetch again; "
                "what has come so far stays."
            ) from error
        raise PomonaError(f"{part.name} cannot be written ({error.strerror}).") from error
