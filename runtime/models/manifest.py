"""What a model's files are, at one revision: enough to lay it out, to divide it into parts, and to check what arrives.

A manifest may come from a peer or a hub, so everything in it is checked by :func:`check_manifest` before it is used.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from runtime.errors import PomonaError
from runtime.models.config import CONFIG_NAME, parse_settings
from runtime.models.folder_names import model_name, snapshot_of
from runtime.models.safetensors_header import LENGTH_BYTES, MAX_HEADER_BYTES, TensorInfo, parse_header
from runtime.models.weight_files import WEIGHT_FILE_NAME, read_weight_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MANIFEST_NAME = "pomona-model.json"
"""A manifest's name in the folders of the store."""
SMALL_FILE_NAME = re.compile(r"[\w+-][\w.+-]{0,79}\.(?:json|jinja|txt|model|tiktoken)", re.ASCII)
"""Configuration and tokenizer. Program code, pickles and whatever else a repository has are never fetched."""
WORKER_FILES = frozenset({CONFIG_NAME, "hf_quant_config.json", "adapter_config.json", "generation_config.json"})
"""What a worker reads beside the weights; the others hold text, which only a controller's node needs."""

_MAX_SMALL_BYTES = 64 << 20
_SAMPLES, _SAMPLE_BYTES = 64, 4096
_Name = Annotated[str, msgspec.Meta(max_length=200)]
_Size = Annotated[int, msgspec.Meta(ge=0, le=2**50)]


class SmallFile(msgspec.Struct, frozen=True):
    """A file beside the weights."""

    name: _Name
    byte_count: Annotated[int, msgspec.Meta(ge=0, le=_MAX_SMALL_BYTES)]
    digest: _Name
    """``sha256:…`` of the contents, or ``git:…``, the SHA-1 of git's blob, which is all that a hub tells of some."""


class WeightFile(msgspec.Struct, frozen=True):
    """A safetensors file: its size and its header's JSON."""

    name: _Name
    byte_count: _Size
    etag: _Name
    """What a hub calls this content; empty for a local folder."""
    header: str


class Manifest(msgspec.Struct, frozen=True):
    """A model's files at one revision."""

    name: _Name
    repository: _Name
    """The hub's name of it, ``owner/name``; empty for a model that is no hub's."""
    revision: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{40,64}\Z")]
    """The hub's commit, or a digest of a local folder."""
    config: str
    """The text of ``config.json``."""
    weight_files: tuple[WeightFile, ...]
    small_files: tuple[SmallFile, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """What ``config.json`` says."""
        return parse_settings(self.config.encode(), f"{CONFIG_NAME} of {self.name}")

    def file_tensors(self) -> list[dict[str, TensorInfo]]:
        """The tensors of each weight file. Raises :class:`PomonaError` for a header that is not what it should be."""
        return [parse_header(file.header.encode(), file.byte_count, file.name) for file in self.weight_files]


def decode_manifest(text: bytes, source: str) -> Manifest:
    """A manifest from a peer or a file, checked. ``source`` names where it is from in errors."""
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PomonaError(f"What {source} says of the model cannot be understood: {error}.") from error
    check_manifest(manifest, source)
    return manifest


def manifest_of(folder: Path) -> Manifest:
    """The manifest of a model folder, of the store or not. Raises :class:`PomonaError`."""
    return stored_manifest(folder) if (folder / MANIFEST_NAME).is_file() else folder_manifest(folder)


def stored_manifest(folder: Path) -> Manifest:
    """The manifest kept in a folder of the store. Raises :class:`PomonaError`."""
    path = folder / MANIFEST_NAME
    try:
        return decode_manifest(path.read_bytes(), str(path))
    except OSError as error:
        raise PomonaError(f"{path} cannot be read ({error.strerror}).") from error


def check_manifest(manifest: Manifest, source: str) -> None:
    """Raise :class:`PomonaError` if a name is more than a file's, or a header is not what safetensors writes."""
    names = [file.name for file in manifest.small_files] + [file.name for file in manifest.weight_files]
    for name, pattern in (
        *((file.name, SMALL_FILE_NAME) for file in manifest.small_files),
        *((file.name, WEIGHT_FILE_NAME) for file in manifest.weight_files),
    ):
        if not pattern.fullmatch(name):
            raise PomonaError(f"{source} names {name!r} as a file of {manifest.name}, which it cannot be.")
    if len(set(names)) < len(names):
        raise PomonaError(f"{source} names a file of {manifest.name} twice.")
    manifest.file_tensors()


def folder_manifest(folder: Path) -> Manifest:
    """The manifest of a full model folder: a snapshot of a hub at its commit, or any other by its contents.

    The revision of such another folder is a digest of its small files, its headers, and samples of the weights; so two
    fine-tunings of one model differ, and nobody waits for gigabytes to be read. Raises :class:`PomonaError`.
    """
    folder = folder.absolute()
    try:
        small = [_small_file(folder, name) for name in small_names(path.name for path in folder.iterdir())]
        weights = []
        for name in read_weight_files(folder):
            with (folder / name).open("rb") as file:
                length = int.from_bytes(file.read(LENGTH_BYTES), "little")
                header = file.read(min(length, MAX_HEADER_BYTES)).decode()
            weights.append(WeightFile(name, (folder / name).stat().st_size, "", header))
        config = (folder / CONFIG_NAME).read_text()
        repository, revision = snapshot_of(folder) or ("", _digest(folder, small, weights))
    except OSError as error:
        raise PomonaError(f"The model folder {folder} cannot be read ({error.strerror}).") from error
    return Manifest(model_name(folder), repository, revision, config, tuple(weights), tuple(small))


def small_names(names: Iterable[str]) -> list[str]:
    """Those of a model's files that go with the weights."""
    return sorted(
        name
        for name in names
        if SMALL_FILE_NAME.fullmatch(name) and not name.endswith(".index.json") and name != MANIFEST_NAME
    )


def digest_matches(data: bytes, digest: str) -> bool:
    """Whether a small file has the contents that its manifest promises."""
    kind, _, wanted = digest.partition(":")
    if kind == "git":
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == wanted
    return kind == "sha256" and hashlib.sha256(data).hexdigest() == wanted


def _small_file(folder: Path, name: str) -> SmallFile:
    data = (folder / name).read_bytes()
    return SmallFile(name, len(data), f"sha256:{hashlib.sha256(data).hexdigest()}")


def _digest(folder: Path, small: list[SmallFile], weights: list[WeightFile]) -> str:
    digest = hashlib.sha256()
    for item in (*small, *weights):
        digest.update(msgspec.json.encode(item))
    for item in weights:
        with (folder / item.name).open("rb") as file:
            for sample in range(_SAMPLES):
                file.seek(item.byte_count * sample // _SAMPLES)
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()
