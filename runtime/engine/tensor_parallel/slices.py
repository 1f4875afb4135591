"""This rank's share of single arrays and projections. All lazy: nothing is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx
from mlx.nn.layers.distributed import shard_inplace, shard_linear
from mlx.utils import tree_map

if TYPE_CHECKING:
    from collections.abc import Sequence

    import mlx.nn as nn

    Group = mx.distributed.Group


def share(array: mx.array, group: Group) -> mx.array:
    """The part of ``array`` along its first axis that belongs to this rank."""
    return mx.split(array, group.size())[group.rank()]


def share_rows(owner: nn.Module, name: str, group: Group, sections: Sequence[int] = ()) -> None:
    """Leave of a projection the outputs of this rank. ``sections`` are where its parts side by side begin."""
    owner[name] = shard_linear(owner[name], "all-to-sharded", segments=list(sections) or 1, group=group)


def share_columns(owner: nn.Module, name: str, group: Group) -> None:
    """Leave of a projection the inputs of this rank; its results are summed over the group, then biased."""
    owner[name] = shard_linear(owner[name], "sharded-to-all", group=group)


def share_rows_in_place(projection: nn.Module, group: Group, sections: int = 1) -> None:
    """As :func:`share_rows`, keeping the module's class (experts)."""
    shard_inplace(projection, "all-to-sharded", segments=sections, group=group)


def share_columns_in_place(projection: nn.Module, group: Group) -> None:
    """Leave of a projection the inputs of this rank. Whoever owns it sums; the bias is the first rank's to add."""
    shard_inplace(projection, "sharded-to-all", group=group)
    if "bias" in projection and group.rank() > 0:
        projection["bias"] = mx.zeros_like(projection["bias"])


def own_buffers(layer: Any) -> None:
    """Copy every array of ``layer``, once it is read, to a buffer of its own size.

    A slice shares the buffer that it was cut from, so the rank would hold the whole. ``mx.contiguous`` copies too,
    but leaves slices alone that are within 16 kB of their buffer.
    """
    layer.update(tree_map(_copied, layer.parameters()))


def _copied(array: mx.array) -> mx.array:
    return mx.concatenate([array, array[:0]]) if array.ndim else array
