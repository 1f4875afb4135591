"""Other copies on this machine as a source of chunks: a folder in place that has a part of what is wanted."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from typing import TYPE_CHECKING

from runtime.errors import PomonaError
from runtime.models.fetch.source import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.agent.models.library import Copy
    from runtime.models.fetch.journal import ChunkWriter
    from runtime.models.parts import Part


class LocalSource:
    """Copies of one model at one revision."""

    name = "this machine"
    is_hub = False
    lanes = 2
    bytes_per_second = 1e9

    def __init__(self, copies: Sequence[Copy]) -> None:
        self._copies = copies

    def offers(self, part: Part) -> bool:
        """Whether a copy has all of it."""
        return any(copy.reader.holds(part) for copy in self._copies)

    async def chunk(self, part: Part, index: int, writer: ChunkWriter) -> bytes:
        """The chunk as it is on the disk."""

        def copy_chunk() -> bytes:
            reader = next((copy.reader for copy in self._copies if copy.reader.holds(part)), None)
            if reader is None:
                raise SourceError(f"{part.name} is not on this machine any more.")
            try:
                data = reader.read(part, *part.chunk(index))
            except PomonaError as error:
                raise SourceError(str(error)) from error
            writer.write(data)
            return hashlib.sha256(data).digest()

        return await asyncio.to_thread(copy_chunk)

    async def small(self, name: str) -> bytes:
        """A small file of one of the copies."""

        def read() -> bytes:
            for copy in self._copies:
                with contextlib.suppress(OSError):
                    return (copy.folder / name).read_bytes()
            raise SourceError(f"{name} is not on this machine.")

        return await asyncio.to_thread(read)
