"""Every model that a node can read: its store, full snapshots in the Hugging Face cache, folders that orders named."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.errors import PomonaError
from runtime.models.manifest import Manifest, manifest_of
from runtime.models.part_files import PartReader, SplitFolder, reader_of
from runtime.models.parts import Part, model_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from runtime.models.store import ModelStore, StoredModel


@dataclass(frozen=True, slots=True)
class Copy:
    """A model on this node, whole or in parts."""

    folder: Path
    manifest: Manifest
    reader: PartReader
    stored: StoredModel | None
    """None for a folder that is not ours."""


class Library:
    """All copies. Safe to use from many threads."""

    def __init__(self, store: ModelStore, hub_cache: Path | None = None) -> None:
        self.store = store
        self._hub_cache = hub_cache
        self._lock = threading.Lock()
        self._folders: dict[Path, tuple[float, Manifest]] = {}
        self._fetching: dict[str, set[str]] = {}
        self._hashes: dict[tuple[str, str, int], bytes] = {}

    def add_folder(self, folder: Path) -> Manifest:
        """A model folder that is used in place, and served to peers: a full copy, or one of another node's store.

        Raises :class:`PomonaError` if it is none.
        """
        folder = folder.absolute()
        stamp = folder.stat().st_mtime if folder.is_dir() else 0.0
        with self._lock:
            known = self._folders.get(folder)
        if known is not None and known[0] == stamp:
            return known[1]
        manifest = manifest_of(folder)
        with self._lock:
            self._folders[folder] = stamp, manifest
        return manifest

    def copies(self, name: str, revision: str = "") -> list[Copy]:
        """Copies of one model on this node; the store's first."""
        return [
            copy
            for copy in self.all()
            if name in {copy.manifest.repository, copy.manifest.name} and copy.manifest.revision.startswith(revision)
        ]

    def all(self) -> list[Copy]:
        """Every copy on this node. A snapshot that is not complete is none."""
        found = [Copy(model.folder, model.manifest, SplitFolder(model.folder), model) for model in self.store.all()]
        for folder in snapshots(self._hub_cache):
            with contextlib.suppress(PomonaError):
                self.add_folder(folder)
        with self._lock:
            found += [
                Copy(folder, manifest, reader_of(folder, manifest), None)
                for folder, (_stamp, manifest) in self._folders.items()
                if folder.is_dir() and folder.parent not in self.store.roots
            ]
        return found

    @contextlib.contextmanager
    def fetching(self, revision: str, names: Iterable[str]) -> Iterator[None]:
        """For the time of the block, peers that ask for these parts are told to ask again."""
        with self._lock:
            self._fetching[revision] = set(names)
        try:
            yield
        finally:
            with self._lock:
                del self._fetching[revision]

    def is_fetching(self, revision: str, name: str) -> bool:
        """Whether a part is on its way here."""
        with self._lock:
            return name in self._fetching.get(revision, ())

    def locate(self, copies: Iterable[Copy], part: Part, index: int) -> tuple[PartReader, bytes] | None:
        """Who reads a chunk, and the SHA-256 that it had when it came here or was first read; None if nobody."""
        for copy in copies:
            if not copy.reader.holds(part):
                continue
            known = copy.stored.chunk_hashes(part) if copy.stored is not None else []
            if known:
                return copy.reader, known[index]
            key = copy.manifest.revision, part.name, index
            if key not in self._hashes:
                self._hashes[key] = hashlib.sha256(copy.reader.read(part, *part.chunk(index))).digest()
            return copy.reader, self._hashes[key]
        return None


def snapshots(hub_cache: Path | None) -> list[Path]:
    """The snapshots in a Hugging Face cache."""
    if hub_cache is None:
        return []
    return sorted(path.parent for path in hub_cache.glob("models--*/snapshots/*/config.json"))


def hub_cache_folder() -> Path:
    """Where ``huggingface_hub`` keeps its snapshots."""
    if named := os.environ.get("HF_HUB_CACHE"):
        return Path(named)
    home = os.environ.get("HF_HOME")
    return (Path(home) if home else Path.home() / ".cache" / "huggingface") / "hub"


def parts_held(copies: Iterable[Copy]) -> list[str]:
    """The parts of a model that its copies hold together."""
    held: set[str] = set()
    for copy in copies:
        held |= {part.name for part in model_parts(copy.manifest).values() if copy.reader.holds(part)}
    return sorted(held)
