"""What crosses a boundary as bytes and back. bfloat16, which no buffer format knows, travels as its bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx
import numpy as np

from runtime.engine.frames import CarriedArray
from runtime.engine.hop import HopError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.engine.frames import CarriedDtype
    from runtime.engine.handover import Carried

MLX_DTYPES: dict[CarriedDtype, mx.Dtype] = {
    "float32": mx.float32,
    "float16": mx.float16,
    "bfloat16": mx.bfloat16,
    "int32": mx.int32,
    "uint32": mx.uint32,
    "bool": mx.bool_,
}
_BUFFER_DTYPES: dict[CarriedDtype, type[np.generic]] = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.uint16,
    "int32": np.int32,
    "uint32": np.uint32,
    "bool": np.bool_,
}


class Blank:
    """An array whose contents come after a graph was built on it; until then, floats in it are no numbers."""

    def __init__(self, shape: Sequence[int], dtype: CarriedDtype) -> None:
        flat = np.zeros(shape, _BUFFER_DTYPES[dtype])
        if "float" in dtype:
            flat.reshape(-1).view(np.uint8)[:] = 0xFF
        self._bits: Any = mx.array(flat)  # has a buffer, its stubs do not say so
        self.nbytes = flat.nbytes
        self.array: mx.array = self._bits.view(MLX_DTYPES[dtype]) if dtype == "bfloat16" else self._bits

    def fill(self, data: bytes | bytearray | memoryview) -> None:
        """Give it its ``nbytes`` bytes, before anything that was built on it is evaluated."""
        np.frombuffer(memoryview(self._bits).cast("B"), np.uint8)[:] = np.frombuffer(data, np.uint8)


def headers_of(arrays: Carried) -> tuple[CarriedArray, ...]:
    """What names these arrays on the other side. Raises :class:`HopError` for a dtype that does not travel."""
    return tuple(CarriedArray(name, _dtype_name(array), array.shape) for name, array in arrays.items())


def to_payload(arrays: Carried) -> tuple[tuple[CarriedArray, ...], bytes | memoryview]:
    """The header and bytes of contiguous arrays; one alone is not copied, the view keeps it alive.

    Raises :class:`HopError` for a dtype that does not travel.
    """
    carried = headers_of(arrays)
    parts = [_bytes_of(array) for array in arrays.values()]
    return carried, parts[0] if len(parts) == 1 else b"".join(parts)


def from_payload(data: bytes | bytearray, carried: Sequence[CarriedArray]) -> Carried:
    """The arrays that ``data`` holds. Raises :class:`HopError` if the size does not match the header."""
    sizes = [int(np.prod(array.shape, dtype=np.int64)) for array in carried]
    expected_bytes = sum(
        size * np.dtype(_BUFFER_DTYPES[array.dtype]).itemsize for size, array in zip(sizes, carried, strict=True)
    )
    if len(data) != expected_bytes:
        shown = ", ".join(f"{array.name} {array.dtype} {array.shape}" for array in carried)
        raise HopError(f"a step with {shown or 'no array'} came with {len(data)} bytes")
    arrays: Carried = {}
    begin = 0
    for size, header in zip(sizes, carried, strict=True):
        if not size:
            arrays[header.name] = mx.zeros(header.shape, MLX_DTYPES[header.dtype])
            continue
        flat = np.frombuffer(data, _BUFFER_DTYPES[header.dtype], size, begin)
        begin += flat.nbytes
        array = mx.array(flat.reshape(header.shape))
        arrays[header.name] = array.view(MLX_DTYPES[header.dtype]) if header.dtype == "bfloat16" else array
    return arrays


def _dtype_name(array: mx.array) -> CarriedDtype:
    name = str(array.dtype).removeprefix("mlx.core.").removesuffix("_")
    if name not in MLX_DTYPES:
        raise HopError(f"an array of dtype {name} cannot be sent")
    return name


def _bytes_of(array: mx.array) -> memoryview:
    if not array.size:
        return memoryview(b"")
    bits: Any = array.view(mx.uint16) if array.dtype == mx.bfloat16 else array  # has a buffer, its stubs do not say so
    return memoryview(bits).cast("B")
