"""What stands for the tensors that a node does not have, while mlx-lm renames and reshapes those of the whole model.

Its ``sanitize`` methods may look at any layer's tensors. So a folder of the store gets arrays of the right shapes for
what is not in it. They are never computed and take no memory; they are not a number, so that a mistake would show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import mlx.core as mx

from runtime.errors import PomonaError
from runtime.models.manifest import MANIFEST_NAME, stored_manifest
from runtime.models.parts import stage_parts
from runtime.models.store import StoredModel

if TYPE_CHECKING:
    from pathlib import Path

_DTYPES = {
    "F64": mx.float32, "F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16,
    "I64": mx.int64, "I32": mx.int32, "I16": mx.int16, "I8": mx.int8,
    "U64": mx.uint64, "U32": mx.uint32, "U16": mx.uint16, "U8": mx.uint8, "BOOL": mx.bool_,
}  # fmt: skip


def absent_tensors(folder: Path, first_layer: int, end_layer: int) -> dict[str, mx.array]:
    """Stand-ins for all tensors that are not in ``folder``; none for a folder that is not of the store.

    Raises :class:`PomonaError` if a part that layers ``[first_layer, end_layer)`` need is not there.
    """
    if not (folder / MANIFEST_NAME).is_file():
        return {}
    model = StoredModel(folder, stored_manifest(folder))
    parts = model.parts()
    held = set(model.held(parts.values()))
    if missing := [name for name in stage_parts(parts, first_layer, end_layer) if name not in held]:
        raise PomonaError(
            f"{model.manifest.name} is not complete on this node: {', '.join(missing[:3])} "
            f"of layers {first_layer} to {end_layer - 1} must be fetched first."
        )
    present = {tensor for name in held for tensor in parts[name].tensor_names}
    return {
        name: _stand_in(tensor.shape, _DTYPES.get(tensor.dtype, mx.uint8))
        for its in model.manifest.file_tensors()
        for name, tensor in its.items()
        if name not in present
    }


def _stand_in(shape: tuple[int, ...], dtype: mx.Dtype) -> mx.array:
    value = mx.array(float("nan") if mx.issubdtype(dtype, mx.floating) else 0, dtype)
    return mx.broadcast_to(value, shape)
