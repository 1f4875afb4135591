"""The hub as a source of chunks: byte ranges of its files, put together as the parts' files are."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

from runtime.models.fetch.source import SourceError
from runtime.models.hub.client import AddressExpired
from runtime.models.hub.repository import check_etag
from runtime.models.manifest import digest_matches

if TYPE_CHECKING:
    from runtime.models.fetch.journal import ChunkWriter
    from runtime.models.hub.client import FileAt, HubClient
    from runtime.models.manifest import Manifest
    from runtime.models.parts import Part, Segment

_LANES = 4
_GUESSED_BYTES_PER_SECOND = 20e6


class HubSource:
    """One revision of one repository."""

    name = "the hub"
    is_hub = True
    lanes = _LANES
    bytes_per_second = _GUESSED_BYTES_PER_SECOND

    def __init__(self, hub: HubClient, manifest: Manifest) -> None:
        self._hub = hub
        self._manifest = manifest
        self._files = {file.name: file for file in manifest.weight_files}
        self._where: dict[str, FileAt] = {}
        self._content_etags: dict[str, str] = {}
        self._locating = asyncio.Lock()

    def offers(self, part: Part) -> bool:  # noqa: ARG002  whatever the part
        """Every part; a transfer asks the hub last."""
        return True

    async def chunk(self, part: Part, index: int, writer: ChunkWriter) -> bytes:
        """The chunk, by one request for each run of bytes in it. What the hub knows of it is the file's ETag."""
        digest = hashlib.sha256()

        def take(data: bytes) -> None:
            digest.update(data)
            writer.write(data)

        for piece in part.pieces(*part.chunk(index)):
            await asyncio.to_thread(take, piece if isinstance(piece, bytes) else await self._read(piece))
        return digest.digest()

    async def small(self, name: str) -> bytes:
        """A small file, checked."""
        file = next(file for file in self._manifest.small_files if file.name == name)

        async def read() -> bytes:
            return await self._hub.read_small(self._manifest.repository, self._manifest.revision, name, file.byte_count)

        data: bytes = await self._hub.retried(name, read)
        if not digest_matches(data, file.digest):
            raise SourceError(f"{name} is not what the hub says that it is; fetch the model again.")
        return data

    async def _read(self, segment: Segment) -> bytes:
        async def read() -> bytes:
            where = await self._locate(segment.file)
            try:
                data, etag = await self._hub.read_range(where, segment.begin, segment.end, segment.file)
            except AddressExpired:
                self._where.pop(segment.file, None)
                where = await self._locate(segment.file)
                data, etag = await self._hub.read_range(where, segment.begin, segment.end, segment.file)
            # The content server's ETag may be of another kind than the hub's, but it must not change on the way.
            check_etag(etag, self._content_etags.setdefault(segment.file, etag), segment.file)
            return data

        found: bytes = await self._hub.retried(f"a part of {segment.file}", read)
        return found

    async def _locate(self, file: str) -> FileAt:
        async with self._locating:
            if file not in self._where:
                where = await self._hub.locate(self._manifest.repository, self._manifest.revision, file)
                check_etag(where.etag, self._files[file].etag, file)
                self._where[file] = where
            return self._where[file]
