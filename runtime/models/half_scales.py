"""Quantized weights for nodes without a GPU: their half-precision scales become float32 when they are stored.

A CPU multiplies packed weights several times as slowly when their scales are float16 or bfloat16. If the person of such
a node agrees, what it fetches is kept converted, as a model of its own beside the original's folder: a tenth larger,
loaded by this node alone, and never given to others, who want the original's bytes.
"""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from runtime.errors import PomonaError
from runtime.models.fetch.journal import written
from runtime.models.manifest import Manifest, WeightFile
from runtime.models.part_files import SplitFolder
from runtime.models.parts import CHUNK_BYTES
from runtime.models.safetensors_header import LENGTH_BYTES, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from runtime.models.parts import Part
    from runtime.models.safetensors_header import TensorInfo
    from runtime.models.store import ModelStore, StoredModel

AGREEMENT_NAME = "float32-scales"
"""A file of this name in the data folder: the person of this node agrees."""
_SUFFIX = "-float32-scales"
_HALVES = ("F16", "BF16")
_SCALES = (".scales", ".biases")


def agrees(folder: Path) -> bool:
    """Whether the person agrees whose data folder this is."""
    return (folder / AGREEMENT_NAME).is_file()


def agree(folder: Path, *, on: bool) -> None:
    """Remember it. Raises :class:`PomonaError` where it would help nothing, and if the folder cannot be used."""
    if on and not runs_halves_badly():
        raise PomonaError("This machine computes on its GPU, where half-precision scales are the fastest.")
    try:
        if on:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / AGREEMENT_NAME).touch(mode=0o600)
        else:
            (folder / AGREEMENT_NAME).unlink(missing_ok=True)
    except OSError as error:
        raise PomonaError(f"The folder {folder} cannot be used ({error.strerror}).") from error


def runs_halves_badly() -> bool:
    """Whether this machine computes on its CPU."""
    return sys.platform != "darwin"


def converted_manifest(manifest: Manifest) -> Manifest | None:
    """The manifest of the same model with float32 scales; None for one that has no half-precision scales."""
    files = manifest.file_tensors()
    packed = {name.removesuffix(".weight") for its in files for name, tensor in its.items() if tensor.dtype == "U32"}
    changed = {
        name
        for its in files
        for name, tensor in its.items()
        if name.endswith(_SCALES) and name.rpartition(".")[0] in packed and tensor.dtype in _HALVES
    }
    if not changed:
        return None
    weights = tuple(_widened(file, its, changed) for file, its in zip(manifest.weight_files, files, strict=True))
    revision = hashlib.sha256(f"{manifest.revision}{_SUFFIX}".encode()).hexdigest()
    return msgspec.structs.replace(
        manifest, name=f"{manifest.name}{_SUFFIX}", repository="", revision=revision, weight_files=weights
    )


def convert(store: ModelStore, model: StoredModel, own_manifest: Manifest, names: Iterable[str]) -> StoredModel:
    """Have parts that are in the store converted too, and let go of the originals; returns what this node loads.

    Raises :class:`PomonaError` if the disk does not take them.
    """
    own = store.open(own_manifest)
    own_parts, parts = own.parts(), model.parts()
    for small in model.manifest.small_files:
        if model.has_small(small.name) and not own.has_small(small.name):
            own.put_small(small.name, (model.folder / small.name).read_bytes())
    held = set(own.held(own_parts.values()))
    for name in names:
        if name not in held:
            _convert_part(model, parts[name], own, own_parts[name])
        model.drop(parts[name])
    return own


def _widened(file: WeightFile, tensors: Mapping[str, TensorInfo], changed: set[str]) -> WeightFile:
    entries: dict[str, object] = {"__metadata__": {"format": "mlx"}}
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        size = 2 * tensor.byte_count if name in changed else tensor.byte_count
        dtype = "F32" if name in changed else tensor.dtype
        entries[name] = {"dtype": dtype, "shape": tensor.shape, "data_offsets": (end, end + size)}
        end += size
    header = msgspec.json.encode(entries)
    return WeightFile(file.name, LENGTH_BYTES + len(header) + end, "", header.decode())


def _convert_part(model: StoredModel, part: Part, own: StoredModel, own_part: Part) -> None:
    reader = SplitFolder(model.folder)
    tensors = parse_header(part.header[LENGTH_BYTES:], part.byte_count, part.file_name)
    widened = parse_header(own_part.header[LENGTH_BYTES:], own_part.byte_count, own_part.file_name)
    digests = _ChunkDigests()
    with written(own_part), own.partial(own_part).open("wb") as file:

        def put(data: bytes) -> None:
            file.write(data)
            digests.update(data)

        put(own_part.header)
        for name in own_part.tensor_names:
            tensor = tensors[name]
            for begin in range(tensor.begin, tensor.end, CHUNK_BYTES):
                data = reader.read(part, begin, min(begin + CHUNK_BYTES, tensor.end))
                put(data if widened[name].dtype == tensor.dtype else _as_float32(data, tensor.dtype))
    with written(own_part):
        own.publish(own_part, digests.finish())


def _as_float32(data: bytes, dtype: str) -> bytes:
    if dtype == "F16":
        return np.frombuffer(data, "<f2").astype("<f4").tobytes()
    return (np.frombuffer(data, "<u2").astype("<u4") << 16).tobytes()  # bfloat16 is the upper half of float32


class _ChunkDigests:
    """The SHA-256 of each chunk of a file that is written front to back."""

    def __init__(self) -> None:
        self._done: list[bytes] = []
        self._open = hashlib.sha256()
        self._room = CHUNK_BYTES

    def update(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            piece = view[: self._room]
            self._open.update(piece)
            self._room -= len(piece)
            view = view[len(piece) :]
            if not self._room:
                self._done.append(self._open.digest())
                self._open, self._room = hashlib.sha256(), CHUNK_BYTES

    def finish(self) -> list[bytes]:
        return self._done if self._room == CHUNK_BYTES else [*self._done, self._open.digest()]
