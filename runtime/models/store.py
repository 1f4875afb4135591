"""The models that this node keeps: of each model and revision a folder, in it the parts that are here.

    <root>/<model>@<revision>/
        config.json, tokenizer.json, …         the small files
        pomona-model.json                      the manifest: what the whole model would have
        model-layer-00007.safetensors          a part, always whole and checked
        .hashes/layer-00007                    the SHA-256 of its chunks, to find a bit that flips later
        .partial/layer-00007, ….journal        a part on its way (see fetch/journal.py)

So any set of parts is a folder that mlx-lm loads, and nothing in it is ever a hole: a part gets its name by a rename.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from runtime.errors import PomonaError
from runtime.models.manifest import MANIFEST_NAME, Manifest, digest_matches, stored_manifest
from runtime.models.part_files import FullFolder, SplitFolder
from runtime.models.parts import model_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from runtime.models.parts import Part

_ODD = re.compile(r"[^\w.+-]+", re.ASCII)
_HASHES, _PARTIAL = ".hashes", ".partial"
_REVISION_LETTERS = 16


@dataclass(frozen=True, slots=True)
class StoredModel:
    """One model in the store."""

    folder: Path
    manifest: Manifest

    def parts(self) -> dict[str, Part]:
        """All parts of the model, here or not."""
        return model_parts(self.manifest)

    def held(self, parts: Iterable[Part]) -> list[str]:
        """Those of ``parts`` that are here, by name."""
        reader = SplitFolder(self.folder)
        return [part.name for part in parts if reader.holds(part)]

    def has_small(self, name: str) -> bool:
        """Whether a small file is here."""
        return (self.folder / name).is_file()

    def put_small(self, name: str, data: bytes) -> None:
        """Keep a small file. Raises :class:`PomonaError` if it is not what the manifest promises."""
        file = next((file for file in self.manifest.small_files if file.name == name), None)
        if file is None or len(data) != file.byte_count or not digest_matches(data, file.digest):
            raise PomonaError(f"{name} of {self.manifest.name} came damaged: fetch it again.")
        _write(self.folder / name, data)

    def chunk_hashes(self, part: Part) -> list[bytes]:
        """The SHA-256 of each chunk of a part that is here, as it was when it arrived; empty if not known."""
        try:
            data = (self.folder / _HASHES / part.name).read_bytes()
        except OSError:
            return []
        size = hashlib.sha256().digest_size
        hashes = [data[place : place + size] for place in range(0, len(data), size)]
        return hashes if len(hashes) == part.chunk_count else []

    def partial(self, part: Part) -> Path:
        """Where a part is put together."""
        folder = self.folder / _PARTIAL
        folder.mkdir(exist_ok=True)
        return folder / part.name

    def publish(self, part: Part, hashes: list[bytes]) -> None:
        """Give a part that is whole and checked its name. On the disk before that, so that no crash leaves less."""
        (self.folder / _HASHES).mkdir(exist_ok=True)
        (self.folder / _HASHES / part.name).write_bytes(b"".join(hashes))  # lost in a crash, it is of no matter
        partial = self.partial(part)
        descriptor = os.open(partial, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        partial.rename(self.folder / part.file_name)

    def drop(self, part: Part) -> None:
        """Forget a part."""
        for path in (self.folder / part.file_name, self.folder / _HASHES / part.name):
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One fetch or removal at a time. Raises :class:`PomonaError` while there is another."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise PomonaError(
                    f"{self.manifest.name} is being fetched already on this node; wait for that or cancel it."
                ) from error
            yield
        finally:
            os.close(descriptor)

    def forget_partial(self) -> None:
        """Give up what is on its way."""
        shutil.rmtree(self.folder / _PARTIAL, ignore_errors=True)

    def disk_bytes(self) -> int:
        """What the model takes on the disk, parts on their way included."""
        total = 0
        for path in self.folder.rglob("*"):
            with contextlib.suppress(OSError):
                total += path.lstat().st_blocks * 512
        return total


class ModelStore:
    """All models in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def roots(self) -> Sequence[Path]:
        """Every folder in which models of the store are."""
        return (self.root,)

    def writable_root(self) -> Path:
        """Where new ones go. Raises :class:`PomonaError` if nothing can be kept there."""
        return self.root

    def open(self, manifest: Manifest) -> StoredModel:
        """The model's folder, made if it is not there."""
        name = _folder_name(manifest)
        known = next((root / name for root in self.roots if (root / name / MANIFEST_NAME).is_file()), None)
        folder = known or self.writable_root() / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / MANIFEST_NAME).is_file():
                _write(folder / MANIFEST_NAME, msgspec.json.encode(manifest))
            config = folder / "config.json"
            if not config.is_file():
                _write(config, manifest.config.encode())
        except OSError as error:
            raise PomonaError(f"The models' folder {folder.parent} cannot be written ({error.strerror}).") from error
        return StoredModel(folder, manifest)

    def find(self, name: str, revision: str = "") -> StoredModel | None:
        """The model called so (a repository, or a name), of the revision if one is given."""
        for model in self.all():
            is_called = name in {model.manifest.repository, model.manifest.name}
            if is_called and model.manifest.revision.startswith(revision):
                return model
        return None

    def all(self) -> list[StoredModel]:
        """Every model, newest first. A folder whose manifest cannot be read is none."""
        found: list[tuple[float, StoredModel]] = []
        for path in (path for root in self.roots for path in root.glob(f"*/{MANIFEST_NAME}")):
            with contextlib.suppress(OSError, PomonaError):
                model = StoredModel(path.parent, stored_manifest(path.parent))
                found.append((path.stat().st_mtime, model))
        return [model for _time, model in sorted(found, key=lambda item: -item[0])]

    def remove(self, model: StoredModel) -> int:
        """Delete a model; returns the bytes that this frees. Raises :class:`PomonaError` while it is being fetched."""
        try:
            with model.locked():
                freed = model.disk_bytes()
                doomed = model.folder.with_name(f".removed-{model.folder.name}")
                shutil.rmtree(doomed, ignore_errors=True)
                model.folder.rename(doomed)  # at once: nobody finds half a model
            shutil.rmtree(doomed)
        except OSError as error:
            raise PomonaError(f"{model.folder} cannot be deleted ({error.strerror}).") from error
        return freed

    def forget_unfinished(self, model: StoredModel) -> None:
        """Give up what is on its way; of a model that then has no part nothing stays.

        Raises :class:`PomonaError` while it is being fetched.
        """
        with model.locked():
            model.forget_partial()
        if not model.held(model.parts().values()):
            self.remove(model)


def _folder_name(manifest: Manifest) -> str:
    name = _ODD.sub("-", (manifest.repository or manifest.name).replace("/", "--")).strip(".")[:80]
    return f"{name or 'model'}@{manifest.revision[:_REVISION_LETTERS]}"


def split_folder(store: ModelStore, manifest: Manifest, folder: Path, names: Iterable[str]) -> StoredModel:
    """Copy parts of a full ``folder`` into the store, without a network. Raises :class:`PomonaError`."""
    model = store.open(manifest)
    reader, parts = FullFolder(folder, manifest), model.parts()
    for name in names:
        part = parts[name]
        hashes = []
        with model.partial(part).open("wb") as file:
            for index in range(part.chunk_count):
                data = reader.read(part, *part.chunk(index))
                hashes.append(hashlib.sha256(data).digest())
                file.write(data)
        model.publish(part, hashes)
    for small in manifest.small_files:
        model.put_small(small.name, (folder / small.name).read_bytes())
    return model


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise PomonaError(f"{path} cannot be written ({error.strerror}).") from error
