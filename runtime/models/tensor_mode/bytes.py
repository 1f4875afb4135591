"""How many bytes of a layer the ranks of a tensor group divide, by the names of its tensors. Pure."""

from __future__ import annotations

from functools import lru_cache

from runtime.models.tensor_mode.modules import (
    ATTENTION_INPUTS,
    ATTENTION_OUTPUTS,
    FUSED_ATTENTION_INPUTS,
    MLPS,
    PER_HEAD_VECTORS,
)

_INPUTS = (
    ATTENTION_INPUTS
    | FUSED_ATTENTION_INPUTS
    | {name for names in MLPS for name in names.inputs}
    | {"embed_q", "unembed_out"}  # multi-head latent attention, by head
    | {"in_proj_qkvz", "in_proj_ba", "in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "conv1d"}  # delta nets
    | {"f_b_proj", "g_b_proj", "b_proj", "conv"}  # Kimi's delta attention
    | {"index_q_proj", "o_a_proj"}
)
_OUTPUTS = ATTENTION_OUTPUTS | {names.output for names in MLPS} | {"o_b_proj"}
_VECTORS = PER_HEAD_VECTORS | {"A_log", "dt_bias"}
_WHOLE = frozenset({"gate", "router", "indexer", "compressor"})
"""Modules with nothing in them that is divided, whatever its name."""
_ENDS = frozenset({"weight", "bias", "scales", "biases", "global_scale", "qweight", "qzeros"})


@lru_cache(maxsize=4096)
def is_divided(path: str) -> bool:
    """Whether every rank holds its share only of the tensor at ``path``, a name inside its layer."""
    words = path.split(".")
    end = words.pop() if words[-1] in _ENDS else ""
    if not words or _WHOLE.intersection(words[:-1]):
        return False
    module = words[-1]
    if module in _OUTPUTS and module not in _INPUTS:
        return end != "bias"
    return module in _INPUTS or module in _OUTPUTS or module in _VECTORS
