"""Tensors that ranks divide are told from those that each holds whole, by their names."""

from __future__ import annotations

import pytest

from runtime.models.tensor_mode.bytes import is_divided


@pytest.mark.parametrize(
    "path",
    [
        "self_attn.q_proj.weight",
        "self_attn.q_proj.scales",
        "self_attn.q_proj.biases",
        "self_attn.q_proj.bias",
        "self_attn.o_proj.weight",
        "self_attn.o_proj.biases",
        "self_attn.qkv_proj.weight",
        "attn.c_attn.bias",
        "self_attn.q_b_proj.weight",
        "self_attn.kv_b_proj.weight",
        "self_attn.embed_q.scales",
        "self_attn.sinks",
        "self_attn.gate_proj.weight",
        "mlp.gate_up_proj.weight",
        "mlp.down_proj.weight",
        "mlp.switch_mlp.down_proj.weight",
        "mlp.experts.17.gate_proj.weight",
        "mlp.experts.gate_up_proj",
        "mlp.experts.down_proj",
        "block_sparse_moe.experts.3.w1.weight",
        "mlp.shared_expert.up_proj.weight",
        "linear_attn.conv1d.weight",
        "linear_attn.A_log",
        "linear_attn.in_proj_qkv.weight",
        "linear_attn.out_proj.weight",
    ],
)
def test_projections_are_divided(path):
    assert is_divided(path)


@pytest.mark.parametrize(
    "path",
    [
        "input_layernorm.weight",
        "self_attn.q_norm.weight",
        "self_attn.o_proj.bias",
        "mlp.down_proj.bias",
        "mlp.gate.weight",
        "mlp.gate.e_score_correction_bias",
        "mlp.gate.gate_proj.weight",
        "mlp.router.weight",
        "mlp.shared_expert_gate.weight",
        "self_attn.q_a_proj.weight",
        "self_attn.kv_a_proj_with_mqa.weight",
        "self_attn.indexer.wq_b.weight",
        "self_attn.indexer.q_b_proj.weight",
        "linear_attn.norm.weight",
        "per_layer_projection.weight",
        "layer_scalar",
        "weight",
    ],
)
def test_the_rest_is_everyones(path):
    assert not is_divided(path)
