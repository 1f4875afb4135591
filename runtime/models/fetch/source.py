"""Where parts can come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from runtime.models.fetch.journal import ChunkWriter
    from runtime.models.parts import Part


class SourceError(PomonaError):
    """This source does not give what it was asked for; another one may."""

    may_pass = False
    """Whether it may give it the next time."""


class DamagedChunk(SourceError):
    """A chunk is not what it should be: a bit flipped on a disk, in memory or on the way."""

    may_pass = True


class NotYet(Exception):
    """The source will have the part, but is still fetching it itself."""


class Source(Protocol):
    """A peer or the hub."""

    name: str
    """For sentences: ``Studio``, ``the hub``."""
    is_hub: bool
    lanes: int
    """Chunks at once."""
    bytes_per_second: float
    """As far as known before anything is fetched."""

    def offers(self, part: Part) -> bool:
        """Whether it has the part, or will."""

    async def chunk(self, part: Part, index: int, writer: ChunkWriter) -> bytes:
        """Write a chunk of the part's file, checked as far as the source lets it be; returns its SHA-256.

        Raises :class:`SourceError` or :class:`NotYet`; what was written then counts for nothing.
        """

    async def small(self, name: str) -> bytes:
        """A small file. Raises :class:`SourceError` or :class:`NotYet`."""
