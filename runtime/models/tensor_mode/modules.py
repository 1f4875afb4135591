"""The modules inside a layer that the ranks of a tensor group divide, by the names that mlx-lm's models give them.

Kept as data without mlx: the engine finds by them what to divide, the planner counts by them what a rank holds.
"""

from __future__ import annotations

from dataclasses import dataclass

ATTENTION_INPUTS = frozenset(
    {"q_proj", "k_proj", "v_proj", "c_q", "c_k", "c_v", "attn_query", "attn_key", "attn_value"}
    | {"q_b_proj", "kv_b_proj"}  # the wide halves of low-rank projections; the narrow ones are everyone's
    | {"gate_proj", "g_proj"}  # gates of what the heads return
)
"""Projections to heads: each rank keeps the rows of its own heads."""

FUSED_ATTENTION_INPUTS = frozenset({"qkv_proj", "q_k_v_proj", "wqkv", "Wqkv", "query_key_value", "c_attn"})
"""Queries, keys and values in one projection."""

ATTENTION_OUTPUTS = frozenset({"o_proj", "out_proj", "dense", "c_proj", "wo", "attn_resid"})
"""Projections from heads: each rank keeps the columns of its own heads, and the results are summed."""

PER_HEAD_VECTORS = frozenset({"sinks", "attention_sink_bias", "head_g"})
"""Parameters with one number for each query head."""


@dataclass(frozen=True, slots=True)
class MlpNames:
    """How a multi-layer perceptron calls its projections."""

    inputs: tuple[str, ...]
    output: str
    sections: int = 1
    """Parts side by side in each input projection: 2 where gate and up are fused."""


MLPS = (
    MlpNames(("gate_proj", "up_proj"), "down_proj"),
    MlpNames(("gate_up_proj",), "down_proj", sections=2),
    MlpNames(("input_linear",), "output_linear", sections=2),
    MlpNames(("up_proj",), "down_proj"),
    MlpNames(("w1", "w3"), "w2"),
    MlpNames(("w1", "v1"), "w2"),
    MlpNames(("w1", "w2"), "c_proj"),
    MlpNames(("c_fc_0", "c_fc_1"), "c_proj"),
    MlpNames(("c_fc",), "c_proj"),
    MlpNames(("fc1",), "fc2"),
    MlpNames(("fc_in",), "fc_out"),
    MlpNames(("dense_h_to_4h",), "dense_4h_to_h"),
    MlpNames(("mlp_gate", "mlp_linear"), "mlp_resid"),
    MlpNames(("proj_1",), "proj_2", sections=2),
)
"""The first whose names are all there is the one."""
