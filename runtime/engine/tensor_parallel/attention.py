"""Attention: every rank has some of the heads, with the rows and columns of the projections that belong to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.nn as nn
from mlx_lm.models.minimax import ShardedRMSNorm

from runtime.engine.tensor_parallel.slices import share, share_columns, share_rows
from runtime.models.tensor_mode.modules import (
    ATTENTION_INPUTS,
    ATTENTION_OUTPUTS,
    FUSED_ATTENTION_INPUTS,
    PER_HEAD_VECTORS,
)

if TYPE_CHECKING:
    import mlx.core as mx

QUERY_HEADS = ("n_heads", "num_heads", "num_attention_heads", "n_head", "q_num_heads")
KEY_VALUE_HEADS = ("n_kv_heads", "num_kv_heads", "num_key_value_heads", "k_num_heads", "v_num_heads")
WIDTHS = ("q_size", "kv_size", "kv_dim", "q_proj_dim", "k_proj_dim", "v_proj_dim")
"""Attributes that are a number of heads times their size."""
QUERY_WIDTHS = {"gpt_bigcode": "dim", "dbrx": "d_model", "nanochat": "hidden_size"}
"""The same for queries under names that mean something else elsewhere, by model type."""
INTERLEAVED = frozenset({"gpt_neox", "internlm2"})
"""Model types whose fused projection has queries, keys and values head by head, not in three sections."""

_QUERIES = (ATTENTION_INPUTS | FUSED_ATTENTION_INPUTS) - {"gate_proj", "g_proj"}
_NORMED = {"q_norm": "q_proj", "k_norm": "k_proj", "q_layernorm": "q_proj", "k_layernorm": "k_proj"}


def is_attention(module: nn.Module) -> bool:
    """Whether ``module`` projects to heads and back."""
    names = set(module)
    return bool(names & _QUERIES) and len(names & ATTENTION_OUTPUTS) == 1


def share_attention(attention: Any, model_type: str, group: mx.distributed.Group) -> None:
    """Leave this rank's heads. Raises :class:`ValueError` when heads do not divide."""
    heads = _count(attention, QUERY_HEADS)
    key_value_heads = _count(attention, KEY_VALUE_HEADS) or heads
    if not heads or heads % group.size() or key_value_heads % group.size():
        raise ValueError(f"{heads} heads of {key_value_heads} keys and values for {group.size()} ranks")
    _share_norms(attention, group)
    for name in sorted(set(attention) & ATTENTION_INPUTS):
        share_rows(attention, name, group)
    for name in set(attention) & FUSED_ATTENTION_INPUTS:
        rows = attention[name].weight.shape[0]
        head_size = rows // (heads + 2 * key_value_heads)
        queries, keys = heads * head_size, key_value_heads * head_size
        share_rows(attention, name, group, () if model_type in INTERLEAVED else (queries, queries + keys))
    for name in set(attention) & ATTENTION_OUTPUTS:
        share_columns(attention, name, group)
    for holder in (attention, *(child for child in attention.children().values() if isinstance(child, nn.Module))):
        for name in set(holder) & PER_HEAD_VECTORS:
            holder[name] = share(holder[name], group)
    for name in (*QUERY_HEADS, *KEY_VALUE_HEADS, *WIDTHS, QUERY_WIDTHS.get(model_type, "")):
        if isinstance(getattr(attention, name, None), int):
            setattr(attention, name, getattr(attention, name) // group.size())


def _count(attention: nn.Module, names: tuple[str, ...]) -> int:
    return next((getattr(attention, name) for name in names if isinstance(getattr(attention, name, None), int)), 0)


def _share_norms(attention: Any, group: mx.distributed.Group) -> None:
    """Norms of queries and keys: a vector for every head stays whole, what differs from head to head is divided."""
    for name in set(attention) & set(_NORMED):
        norm = attention[name]
        if "norms" in norm:  # a list with a norm for each head
            mine = len(norm.norms) // group.size()
            norm.norms = norm.norms[group.rank() * mine :][:mine]
        elif norm.weight.ndim > 1:
            norm.weight = share(norm.weight, group)
        elif _NORMED[name] in attention and norm.weight.size == attention[_NORMED[name]].weight.shape[0]:
            if not isinstance(norm, nn.RMSNorm):
                raise TypeError(f"{name} spans all heads and is a {type(norm).__name__}")
            attention[name] = ShardedRMSNorm.from_rms_norm(norm, group=group)
