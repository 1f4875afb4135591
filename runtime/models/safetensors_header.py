"""The header of a safetensors file: which tensors it holds and where, without reading them.

The file is 8 bytes of header length (little-endian), that many bytes of JSON, then the tensors back to back:
https://github.com/huggingface/safetensors#format. A header may come from a stranger, so everything in it is checked.
"""

from __future__ import annotations

import os
from math import prod
from typing import TYPE_CHECKING, Annotated

import msgspec

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from pathlib import Path

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000
"""The limit of the safetensors library itself."""

_DTYPE_BITS = {
    **dict.fromkeys(("C64", "F64", "I64", "U64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}

_Size = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class _Entry(msgspec.Struct, gc=False):
    """One tensor as the JSON has it; its offsets count from the first byte after the header."""

    dtype: str
    shape: Annotated[tuple[_Size, ...], msgspec.Meta(max_length=32)]
    data_offsets: tuple[_Size, _Size]


class TensorInfo(msgspec.Struct, frozen=True, gc=False):
    """One tensor: its type and shape, and its bytes ``[begin, end)`` in the file.

    ``gc=False``, because it holds numbers only and a model of many experts has a hundred thousand.
    """

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def byte_count(self) -> int:
        return self.end - self.begin


_decode_names = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_entry = msgspec.json.Decoder(_Entry).decode


def read_header(path: Path) -> dict[str, TensorInfo]:
    """The tensors of a file by name, in its header's order. Raises :class:`PomonaError` if it is missing or damaged."""
    try:
        if not path.is_file():
            raise PomonaError(f"The model file {path.name} is missing from {path.parent}: fetch the model again.")
        with path.open("rb") as file:
            file_bytes = os.fstat(file.fileno()).st_size
            length = header_length(file.read(LENGTH_BYTES), file_bytes, path.name)
            return parse_header(file.read(length), file_bytes, path.name)
    except OSError as error:
        raise PomonaError(f"The model file {path} cannot be read ({error.strerror}).") from error


def header_length(prefix: bytes, file_bytes: int, source: str) -> int:
    """Bytes of JSON that follow ``prefix``, the first eight of ``file_bytes``; ``source`` names the file in errors."""
    if len(prefix) < LENGTH_BYTES or file_bytes < LENGTH_BYTES:
        raise _damaged(source, f"it has {file_bytes} bytes")
    length = int.from_bytes(prefix[:LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        raise _damaged(source, f"its header would have {length} bytes")
    if length > file_bytes - LENGTH_BYTES:
        raise _damaged(source, f"it ends inside its header, after {file_bytes} bytes")
    return length


def parse_header(text: bytes, file_bytes: int, source: str) -> dict[str, TensorInfo]:
    """The tensors that a header's JSON describes; they must fill the rest of the file without gap or overlap."""
    try:
        names = _decode_names(text)
        if (metadata := names.pop("__metadata__", None)) is not None:
            msgspec.json.decode(metadata, type=dict[str, str] | None)  # mlx writes null for none
        entries = {name: _decode_entry(entry) for name, entry in names.items()}
    except (msgspec.DecodeError, RecursionError) as error:
        raise _damaged(source, "its header is not what safetensors writes") from error
    data_start = LENGTH_BYTES + len(text)
    tensors = {name: _checked(name, entry, data_start, source) for name, entry in entries.items()}
    end = data_start
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin != end:
            what = "overlaps the one before it" if tensor.begin < end else "leaves a gap before it"
            raise _damaged(source, f"tensor {shown(name)} {what}")
        end = tensor.end
    if end > file_bytes:
        raise _damaged(source, f"it has {file_bytes} of {end} bytes")
    if end < file_bytes:
        raise _damaged(source, f"{file_bytes - end} bytes at its end belong to no tensor")
    return tensors


def shown(name: str) -> str:
    """A tensor's name for a sentence: quoted, cut, nothing in it that does not print."""
    return repr(name if len(name) <= 100 else f"{name[:97]}...")


def _checked(name: str, entry: _Entry, data_start: int, source: str) -> TensorInfo:
    begin, end = entry.data_offsets
    bits = _DTYPE_BITS.get(entry.dtype)
    if bits is None:
        raise _damaged(source, f"tensor {shown(name)} has the unknown type {shown(entry.dtype)}")
    if prod(entry.shape) * bits != (end - begin) * 8:
        raise _damaged(source, f"shape and size of tensor {shown(name)} disagree")
    return TensorInfo(entry.dtype, entry.shape, data_start + begin, data_start + end)


def _damaged(source: str, what: str) -> PomonaError:
    return PomonaError(f"The model file {source} is damaged: {what}. Fetch it again.")
