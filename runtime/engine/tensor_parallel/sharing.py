"""Which strategy divides what: mlx-lm's own ``shard`` where a model has one, ours by kind of layer where not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.nn as nn
from mlx_lm.models import deepseek_v3

from runtime.engine.tensor_parallel.attention import is_attention, share_attention
from runtime.engine.tensor_parallel.delta_net import is_delta_net, share_delta_net
from runtime.engine.tensor_parallel.feed_forward import is_mixture, mlp_names, share_mixture, share_mlp
from runtime.engine.tensor_parallel.slices import own_buffers

if TYPE_CHECKING:
    import mlx.core as mx


def shard(model: Any, group: mx.distributed.Group) -> None:
    """Leave of every layer of ``model`` what this rank of ``group`` computes. Lazy: no weight is read.

    Raises :class:`ValueError` for a layer in which nothing is found to divide, or that does not divide equally.
    """
    for _path, module in model.named_modules():
        # mlx's sharded layers would forget what these have beside their scales.
        if isinstance(module, nn.QQLinear) or getattr(module, "mode", "") == "nvfp4":
            raise ValueError("its weights are quantized in a way that tensor mode does not share")
    language_model = model if hasattr(model, "shard") else getattr(model, "language_model", model)
    if hasattr(language_model, "shard"):
        language_model.shard(group)
    elif model.model_type == "kimi_vl":  # DeepSeek-V3 behind a wrapper
        deepseek_v3.Model.shard(language_model, group)
    else:
        for index, layer in enumerate(model.layers):
            if not _share_children(layer, language_model.model_type, group):
                raise ValueError(f"layer {index} of a {model.model_type} model has nothing that ranks can share")
    for layer in model.layers:
        own_buffers(layer)


def _share_children(owner: Any, model_type: str, group: mx.distributed.Group) -> int:
    """Divide what is inside ``owner``; returns how many modules were found."""
    found = 0
    members = owner.items() if isinstance(owner, dict) else enumerate(owner)
    for key, child in list(members):
        if isinstance(child, list):
            found += _share_children(child, model_type, group)
        elif isinstance(child, nn.Module):
            found += _share_child(owner, key, model_type, group)
    return found


def _share_child(owner: Any, key: Any, model_type: str, group: mx.distributed.Group) -> int:
    child = owner[key]
    if is_mixture(child):
        share_mixture(owner, key, group)
    elif is_delta_net(child):
        share_delta_net(child, group)
    elif is_attention(child):
        share_attention(child, model_type, group)
    elif names := mlp_names(child):
        share_mlp(child, names, group)
    else:
        return _share_children(child, model_type, group)
    return 1
