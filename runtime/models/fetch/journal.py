"""A part on its way: a file with the chunks that came, in any order, and a journal of what they have to be.

A line of the journal is a chunk's number and its SHA-256. It is written after the chunk, and when a fetch goes on,
each chunk is read and compared again. So it does not matter what a crash or a lost reboot left of either file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from typing import TYPE_CHECKING

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runtime.models.parts import Part


class PartialPart:
    """The part at ``path``, and ``path`` with ``.journal`` behind it. Holds what an earlier fetch left."""

    def __init__(self, part: Part, path: Path) -> None:
        self.part = part
        self._path = path
        self._journal = path.with_name(f"{path.name}.journal")
        self._hashes: dict[int, bytes] = self._still_right()
        with _written(part):
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

    def put(self, index: int, data: memoryview, digest: bytes) -> None:
        """Keep a checked chunk. Raises :class:`PomonaError` if the disk does not take it."""
        begin, end = self.part.chunk(index)
        if len(data) != end - begin:
            raise ValueError(f"chunk {index} of {self.part.name} has {len(data)} bytes")
        with _written(self.part):
            descriptor = os.open(self._path, os.O_WRONLY)
            try:
                view, place = data, begin
                while view:
                    count = os.pwrite(descriptor, view, place)
                    view, place = view[count:], place + count
            finally:
                os.close(descriptor)
            with self._journal.open("a") as journal:
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
def _written(part: Part) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise PomonaError(
                f"The disk is full, so {part.name} could not be kept: make room and fetch again; "
                "what has come so far stays."
            ) from error
        raise PomonaError(f"{part.name} cannot be written ({error.strerror}).") from error
