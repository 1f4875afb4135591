"""Fetching: all sources at once, each giving what it has, until every wanted part is whole.

Peers come before the hub, which is asked only for parts that no peer has. Among peers the fastest take the work, and a
slower one helps as long as a chunk from it comes before the faster ones would be done.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.errors import PomonaError
from runtime.models.fetch.journal import PartialPart, written
from runtime.models.fetch.source import NotYet, SourceError
from runtime.models.manifest import WORKER_FILES
from runtime.models.parts import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from runtime.models.fetch.source import Source
    from runtime.models.parts import Part
    from runtime.models.store import StoredModel

KEPT_FREE = 0.1
"""Of the disk, this share stays free."""
_LATER_SECONDS = 0.3
"""Before a peer that is still fetching is asked again."""
_FAULTS = 3
"""After so many wrong chunks a source is left alone."""


@dataclass(slots=True)
class Progress:
    """How far a fetch is. Bytes are those of the parts' files."""

    total_bytes: int
    done_bytes: int = 0
    from_source: dict[str, int] = field(default_factory=dict)
    """Bytes that came in this run, by the source's name."""
    started_seconds: float = field(default_factory=time.monotonic)

    @property
    def bytes_per_second(self) -> float:
        """Of this run."""
        return sum(self.from_source.values()) / max(time.monotonic() - self.started_seconds, 1e-3)

    @property
    def seconds_left(self) -> float | None:
        """At this rate; None before anything came."""
        rate = self.bytes_per_second
        return (self.total_bytes - self.done_bytes) / rate if rate > 0 else None


class Transfer:
    """One model's parts on their way to this node's store. Cancelling :meth:`run` pauses; a new one goes on."""

    def __init__(
        self,
        model: StoredModel,
        names: Sequence[str],
        sources: Sequence[Source],
        on_progress: Callable[[Progress], None] | None = None,
        *,
        with_text: bool = False,
        is_first: bool = False,
    ) -> None:
        """``names`` are the wanted parts; ``with_text`` brings the tokenizer's files too.

        ``is_first`` says that no peer has anything yet, so that small files are the hub's to give.
        """
        self._model = model
        self._parts = model.parts()
        self.names = tuple(names)
        self._sources = sorted(sources, key=lambda source: (source.is_hub, -source.bytes_per_second))
        self._on_progress = on_progress
        self._with_text = with_text
        self._is_first = is_first
        self._failures: dict[str, SourceError] = {}
        self._faults: dict[str, int] = {}
        self._jobs: deque[tuple[PartialPart, int]] = deque()
        self._open_chunks: dict[str, int] = {}
        self._changed = asyncio.Event()
        self.progress = Progress(0)

    async def run(self) -> Progress:
        """Fetch. Raises :class:`PomonaError` with what is missing when no source is left that has it."""
        with self._model.locked():
            await self._fetch_small()
            held = set(self._model.held(self._parts.values()))
            self.progress.total_bytes = sum(self._parts[name].byte_count for name in self.names)
            self.progress.done_bytes = sum(self._parts[name].byte_count for name in self.names if name in held)
            wanted = [self._parts[name] for name in self.names if name not in held]
            partials = await asyncio.to_thread(lambda: [PartialPart(p, self._model.partial(p)) for p in wanted])
            self.progress.done_bytes += sum(partial.done_bytes for partial in partials)
            check_room(self._model.folder, self.progress.total_bytes - self.progress.done_bytes, self._model)
            for partial in partials:
                self._open_chunks[partial.part.name] = len(partial.missing)
                self._jobs += [(partial, index) for index in partial.missing]
                if not partial.missing:
                    await self._publish(partial)
            self._tell()
            await self._work()
        return self.progress

    async def _work(self) -> None:
        try:
            async with asyncio.TaskGroup() as self._group:
                for source in self._sources:
                    for _lane in range(source.lanes):
                        self._group.create_task(self._lane(source))
        except* PomonaError as errors:
            raise errors.exceptions[0] from None
        if any(self._open_chunks.values()):
            raise self._nobody(next(name for name, count in self._open_chunks.items() if count))

    async def _lane(self, source: Source) -> None:
        while any(self._open_chunks.values()) and source.name not in self._failures:
            job = self._take(source)
            if job is None:
                if self._is_useless(source):
                    return
                await self._wait()
                continue
            partial, index = job
            try:
                with contextlib.closing(partial.writer(index)) as writer:
                    digest = await source.chunk(partial.part, index, writer)
            except NotYet:
                self._jobs.append(job)
                await asyncio.sleep(_LATER_SECONDS)
                continue
            except SourceError as error:
                self._jobs.appendleft(job)
                self._fail(source, error)
                continue
            except asyncio.CancelledError:
                self._jobs.appendleft(job)
                raise
            self._took(source, partial, index, digest)
            self._tell()
            self._stir()

    def _took(self, source: Source, partial: PartialPart, index: int, digest: bytes) -> None:
        partial.keep(index, digest)
        begin, end = partial.part.chunk(index)
        came = self.progress.from_source
        came[source.name] = came.get(source.name, 0) + end - begin
        self.progress.done_bytes += end - begin
        self._open_chunks[partial.part.name] -= 1
        if not self._open_chunks[partial.part.name]:  # its bytes go to the disk while others come
            self._group.create_task(self._publish(partial))

    def _take(self, source: Source) -> tuple[PartialPart, int] | None:
        for place, (partial, index) in enumerate(self._jobs):
            part = partial.part
            if source.offers(part) and (self._is_best(source, part) or self._helps(source, part)):
                del self._jobs[place]
                return partial, index
        return None

    def _living(self, part: Part) -> list[Source]:
        return [source for source in self._sources if source.name not in self._failures and source.offers(part)]

    def _is_best(self, source: Source, part: Part) -> bool:
        return self._living(part)[0] is source

    def _helps(self, source: Source, part: Part) -> bool:
        """Whether a chunk from a slower peer would come before the faster ones have done all the rest."""
        faster = [other for other in self._living(part) if other.bytes_per_second > source.bytes_per_second]
        if source.is_hub:
            return False
        rest = len(self._jobs) * CHUNK_BYTES / sum(other.bytes_per_second for other in faster) if faster else 1e9
        return CHUNK_BYTES / source.bytes_per_second < rest

    def _is_useless(self, source: Source) -> bool:
        """Whether nothing that is open could ever be this source's."""
        return not any(count and source.offers(self._parts[name]) for name, count in self._open_chunks.items())

    def _fail(self, source: Source, error: SourceError) -> None:
        faults = self._faults[source.name] = self._faults.get(source.name, 0) + 1
        if faults >= _FAULTS or not error.may_pass:
            self._failures[source.name] = error
        self._stir()

    def _nobody(self, name: str) -> PomonaError:
        reasons = " ".join(str(error) for error in self._failures.values())
        return PomonaError(
            f"{self._parts[name].name} of {self._model.manifest.name} could not be fetched: "
            f"{reasons or 'no node in reach has it, and the hub is not asked for it.'}"
        )

    async def _publish(self, partial: PartialPart) -> None:
        def publish() -> None:
            with written(partial.part):
                self._model.publish(partial.part, partial.hashes)
                partial.discard_journal()

        await asyncio.to_thread(publish)

    async def _fetch_small(self) -> None:
        names = [file.name for file in self._model.manifest.small_files]
        for name in names:
            if (self._with_text or name in WORKER_FILES) and not self._model.has_small(name):
                self._model.put_small(name, await self._small(name))

    async def _small(self, name: str) -> bytes:
        errors: list[str] = []
        for source in self._sources:
            if self._is_first and not source.is_hub:
                continue
            try:
                while True:
                    try:
                        return await source.small(name)
                    except NotYet:
                        await asyncio.sleep(_LATER_SECONDS)
            except SourceError as error:
                errors.append(str(error))
        raise PomonaError(
            f"{name} of {self._model.manifest.name} could not be fetched: {' '.join(errors) or 'no node has it.'}"
        )

    async def _wait(self) -> None:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LATER_SECONDS):
                await self._changed.wait()

    def _stir(self) -> None:
        self._changed.set()

    def _tell(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self.progress)


def check_room(folder: Path, needed_bytes: int, model: StoredModel) -> None:
    """Raise :class:`PomonaError` if the disk would be left with less than a tenth of it."""
    usage = shutil.disk_usage(folder)
    spare = usage.free - int(usage.total * KEPT_FREE)
    if needed_bytes > max(spare, 0):
        raise PomonaError(
            f"The disk has {usage.free / 1e9:.1f} GB free, of which a tenth of the disk stays free; "
            f"{model.manifest.name} needs {needed_bytes / 1e9:.1f} GB more. Make room, or give this node fewer layers."
        )
