"""The gated delta net of Qwen3-Next: linear attention, whose projection in is laid out key head by key head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlx.nn.layers.distributed import shard_inplace

from runtime.engine.tensor_parallel.slices import share, share_columns, share_rows

if TYPE_CHECKING:
    import mlx.core as mx
    import mlx.nn as nn

_COUNTS = ("num_k_heads", "num_v_heads", "key_dim", "value_dim", "conv_dim")


def is_delta_net(module: nn.Module) -> bool:
    """Whether ``module`` is Qwen3-Next's linear attention."""
    return {"in_proj_qkvz", "in_proj_ba", "conv1d", "out_proj"} <= set(module)


def share_delta_net(net: Any, group: mx.distributed.Group) -> None:
    """Leave this rank's key heads and the value heads that belong to them."""
    if net.num_k_heads % group.size():
        raise ValueError(f"{net.num_k_heads} key heads for {group.size()} ranks")
    share_rows(net, "in_proj_qkvz", group)
    share_rows(net, "in_proj_ba", group)
    # The convolution runs over all queries, then all keys, then all values.
    sections = [net.key_dim, 2 * net.key_dim]
    shard_inplace(net.conv1d, lambda _path, _weight: (0, sections), group=group)
    net.conv1d.groups //= group.size()
    net.A_log = share(net.A_log, group)
    net.dt_bias = share(net.dt_bias, group)
    share_columns(net, "out_proj", group)
    for name in _COUNTS:
        setattr(net, name, getattr(net, name) // group.size())
