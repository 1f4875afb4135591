"""What config.json says becomes bytes and operations; tensor mode shares them."""

from __future__ import annotations

import pytest

from runtime.models.layout import ModelLayout
from runtime.planning.cost import LinkSpeed, NodeSpeed
from runtime.planning.from_config import model_cost
from runtime.planning.problem import CostedNode, SplitProblem, uniform_links
from runtime.planning.tensor import tensor_group

PLAIN = {"hidden_size": 64, "torch_dtype": "bfloat16"}


def layout_of(*layer_bytes: int) -> ModelLayout:
    return ModelLayout(
        name="Tiny",
        model_type="llama",
        layer_bytes=layer_bytes,
        embedding_bytes=1000,
        head_bytes=70,
        tied_embedding=False,
        attention_heads=8,
        key_value_heads=2,
        context_tokens=2048,
        layer_divided_bytes=tuple(count // 2 for count in layer_bytes),
        head_divided_bytes=0,
        tensor_refusals=("", "", ""),
    )


def test_a_plain_model_keeps_keys_and_values_of_two_bytes():
    model = model_cost(layout_of(4000, 4000), PLAIN)
    assert model.hidden_bytes == 128
    assert [layer.kv_bytes_per_token for layer in model.layers] == [2 * 2 * 8 * 2] * 2
    assert [layer.active_bytes for layer in model.layers] == [4000, 4000]
    assert model.layers[0].flops_per_token == 4000
    assert model_cost(layout_of(4000), {**PLAIN, "head_dim": 32}).layers[0].kv_bytes_per_token == 2 * 2 * 32 * 2


def test_the_text_part_of_a_multimodal_model_counts():
    model = model_cost(layout_of(4000), {"hidden_size": 9, "text_config": {"hidden_size": 64, "dtype": "float32"}})
    assert model.hidden_bytes == 256


def test_kinds_of_layers_differ_in_their_cache():
    kinds = ["full_attention", "sliding_attention", "linear_attention"]
    model = model_cost(layout_of(1, 1, 1), {**PLAIN, "layer_types": kinds, "sliding_window": 16})
    assert [layer.cache_bytes(100) for layer in model.layers] == [6400, 1024, 0]


def test_latent_attention_keeps_one_compressed_row():
    model = model_cost(layout_of(1), {**PLAIN, "kv_lora_rank": 32, "qk_rope_head_dim": 8})
    assert model.layers[0].kv_bytes_per_token == (32 + 8) * 2


def test_only_the_chosen_experts_are_active():
    expert = 3 * 64 * 4 * 2
    settings = {**PLAIN, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 4}
    model = model_cost(layout_of(8 * expert + 100, 500), settings)
    assert [layer.active_bytes for layer in model.layers] == [2 * expert + 100, 500]


def test_a_quantized_parameter_has_its_share_of_scale_and_bias():
    model = model_cost(layout_of(4500), {**PLAIN, "quantization": {"bits": 4, "group_size": 64}})
    assert model.layers[0].flops_per_token == pytest.approx(2 * 4500 / 0.5625)


@pytest.mark.parametrize("odd", [{}, {"layer_types": 3, "sliding_window": "x", "hidden_size": -1, "quantization": []}])
def test_an_odd_configuration_plans_all_the_same(odd):
    assert model_cost(layout_of(10, 10), odd).layers[0].weight_bytes == 10


def test_a_tensor_group_shares_what_divides_and_waits_for_two_reduces_a_layer():
    layout = layout_of(4000, 4000)
    nodes = tuple(CostedNode(name, 10_000, 0, NodeSpeed(1e6, 1e9)) for name in "ab")
    problem = SplitProblem(model_cost(layout, PLAIN), nodes, uniform_links(2, LinkSpeed(2e-3, 1e6)), 10)
    group = tensor_group(problem, layout)
    weights = 4000 + 2000 + 1000 + 70
    assert {(memory.weight_bytes, memory.kv_bytes) for memory in group.memory} == {(weights, 640)}
    assert group.node_seconds[0] == pytest.approx((weights - 1000 + 640) / 1e6)
    assert group.reduce_seconds == pytest.approx(2 * 2 * 2 * (1e-3 + 64 / 1e6))
    assert group.warning is not None
    assert "slower than one node" in group.warning


def test_a_tensor_group_over_a_fast_link_has_no_warning():
    layout = layout_of(4000, 4000)
    nodes = tuple(CostedNode(name, 10_000, 0, NodeSpeed(1e6, 1e9)) for name in "ab")
    problem = SplitProblem(model_cost(layout, PLAIN), nodes, uniform_links(2, LinkSpeed(1e-6, 1e9)), 10)
    assert tensor_group(problem, layout).warning is None
