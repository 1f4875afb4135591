"""Hidden states as bytes and back. bfloat16, which no buffer format knows, travels as its bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx
import numpy as np

from runtime.engine.hop import HopError

if TYPE_CHECKING:
    from runtime.engine.frames import HiddenDtype

_MLX_DTYPES: dict[HiddenDtype, mx.Dtype] = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}
_BUFFER_DTYPES: dict[HiddenDtype, type[np.generic]] = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.uint16,
}


def dtype_name(array: mx.array) -> HiddenDtype:
    """The name under which the array's dtype travels. Raises :class:`HopError` for a dtype that no hidden state has."""
    name = str(array.dtype).removeprefix("mlx.core.")
    if name not in _MLX_DTYPES:
        raise HopError(f"a hidden state of dtype {name} cannot be sent")
    return name


def to_payload(array: mx.array) -> memoryview:
    """The bytes of a contiguous array, without a copy; the view keeps them alive."""
    bits: Any = array.view(mx.uint16) if array.dtype == mx.bfloat16 else array  # has a buffer, its stubs do not say so
    return memoryview(bits).cast("B")


def from_payload(data: bytes | bytearray, dtype: HiddenDtype, shape: tuple[int, ...]) -> mx.array:
    """The hidden state that ``data`` holds. Raises :class:`HopError` if the size does not match the header."""
    buffer_dtype = _BUFFER_DTYPES[dtype]
    expected_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(buffer_dtype).itemsize
    if len(data) != expected_bytes:
        raise HopError(f"a hidden state of shape {shape} and dtype {dtype} came with {len(data)} bytes")
    array = mx.array(np.frombuffer(data, buffer_dtype).reshape(shape))
    return array.view(_MLX_DTYPES[dtype]) if dtype == "bfloat16" else array
