"""A model divided into parts that are kept and moved each as one small safetensors file. Pure.

One part for each layer, and three for the rest: the embedding, what only the first stage needs beside it, and norm and
head. A node at one end so needs nothing of the other. The file of a part follows from the manifest alone, to the byte,
so all nodes have the same, whether one keeps it as a file or cuts it out of a full copy on the way to a peer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from runtime.models.config import model_config
from runtime.models.safetensors_header import LENGTH_BYTES
from runtime.models.tensor_names import layer_places, part_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.models.manifest import Manifest
    from runtime.models.safetensors_header import TensorInfo

CHUNK_BYTES = 8 << 20
"""What is asked for, checked and written down at once."""
PART_NAME = re.compile(r"layer-\d{5}|embedding|first|last")
_ENDS = {"embedding": "embedding", "beside embedding": "first", "head": "last", "other": "last"}


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes ``[begin, end)`` of a weight file that lie at ``offset`` in the file of a part."""

    offset: int
    file: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part: its file is ``header`` and then ``segments``, back to back."""

    name: str
    tensor_names: tuple[str, ...]
    header: bytes
    segments: tuple[Segment, ...]
    byte_count: int
    """Of the file."""

    @property
    def file_name(self) -> str:
        """What mlx-lm loads (``model*.safetensors``)."""
        return f"model-{self.name}.safetensors"

    @property
    def tensor_bytes(self) -> int:
        return self.byte_count - len(self.header)

    @property
    def chunk_count(self) -> int:
        return -(-self.byte_count // CHUNK_BYTES)

    def chunk(self, index: int) -> tuple[int, int]:
        """The bytes ``[begin, end)`` of a chunk in the part's file."""
        return index * CHUNK_BYTES, min((index + 1) * CHUNK_BYTES, self.byte_count)

    def pieces(self, begin: int, end: int) -> list[bytes | Segment]:
        """Where bytes ``[begin, end)`` of the file come from: bytes of the header, and pieces of weight files."""
        found: list[bytes | Segment] = [self.header[begin:end]] if begin < len(self.header) else []
        for segment in self.segments:
            low = max(begin, segment.offset)
            high = min(end, segment.offset + segment.end - segment.begin)
            if low < high:
                shift = segment.begin - segment.offset
                found.append(Segment(low, segment.file, low + shift, high + shift))
        return found


def layer_part(layer: int) -> str:
    """The name of a layer's part."""
    return f"layer-{layer:05}"


def model_parts(manifest: Manifest) -> dict[str, Part]:
    """All parts of a model by name; vision and audio towers and multi-token prediction are in none.

    Raises :class:`runtime.errors.PomonaError` for a manifest that describes no language model.
    """
    files = manifest.file_tensors()
    where = {tensor: number for number, its in enumerate(files) for tensor in its}
    config = model_config(manifest.settings, manifest.name)
    places = layer_places({name: files[number][name].byte_count for name, number in where.items()}, config.layer_count)
    grouped: dict[str, list[str]] = {}
    for name in where:
        part = None
        if places is not None and name in places:
            layer = places[name][0]
            part = layer_part(layer) if layer < config.layer_count else None
        elif not (config.tied is True and part_of(name) == "head"):  # a copy of the embedding, which mlx-lm drops
            part = _ENDS.get(part_of(name))
        if part is not None:
            grouped.setdefault(part, []).append(name)
    names = [file.name for file in manifest.weight_files]
    return {
        part: _part(part, [(names[where[name]], name, files[where[name]][name]) for name in its])
        for part, its in sorted(grouped.items())
    }


def stage_parts(parts: Mapping[str, Part], first_layer: int, end_layer: int) -> list[str]:
    """The parts that a stage of layers ``[first_layer, end_layer)`` needs, of all ``parts`` of a model."""
    layer_count = sum(part.startswith("layer-") for part in parts)
    wanted = {layer_part(layer) for layer in range(first_layer, end_layer)}
    if first_layer == 0:
        wanted |= {"embedding", "first"}
    if end_layer == layer_count:
        wanted.add("last")
        if not any(part_of(name) == "head" for name in (parts["last"].tensor_names if "last" in parts else ())):
            wanted.add("embedding")  # without a head of its own, the model takes the embedding for it
    return sorted(wanted.intersection(parts))


def _part(name: str, tensors: list[tuple[str, str, TensorInfo]]) -> Part:
    tensors.sort(key=lambda item: (item[0], item[2].begin, item[2].end, item[1]))
    ends = list(accumulate(tensor.byte_count for _file, _name, tensor in tensors))
    entries: dict[str, object] = {"__metadata__": {"format": "mlx"}}
    for (_file, tensor_name, tensor), end in zip(tensors, ends, strict=True):
        entries[tensor_name] = {
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": (end - tensor.byte_count, end),
        }
    text = msgspec.json.encode(entries)
    text += b" " * (-len(text) % LENGTH_BYTES)
    header = len(text).to_bytes(LENGTH_BYTES, "little") + text
    segments: list[Segment] = []
    for (file, _name, tensor), end in zip(tensors, ends, strict=True):
        before = segments[-1] if segments else None
        if before is not None and (before.file, before.end) == (file, tensor.begin):
            segments[-1] = Segment(before.offset, file, before.begin, tensor.end)
        elif tensor.byte_count:
            segments.append(Segment(len(header) + end - tensor.byte_count, file, tensor.begin, tensor.end))
    byte_count = len(header) + (ends[-1] if ends else 0)
    return Part(name, tuple(item[1] for item in tensors), header, tuple(segments), byte_count)
