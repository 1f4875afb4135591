"""What config.json says becomes bytes and operations; tensor groups share them."""

from __future__ import annotations

import msgspec
import pytest

from runtime.models.layer_figures import figures_from_config
from runtime.models.layout import ModelLayout
from runtime.planning.cost import REQUESTS_PER_STEP, LinkSpeed, NodeSpeed
from runtime.planning.model_cost import model_cost
from runtime.planning.plan import Link, Pins, Plan, PlanNode, Refusal, make_plan

PLAIN = {"hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2}


def layout_of(*layer_bytes: int, settings=None, active=None, dtype="BF16") -> ModelLayout:
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
        tensor_refusals=("", "Not three.", ""),
        layer_active_bytes=layer_bytes if active is None else active,
        figures=figures_from_config(PLAIN if settings is None else settings, len(layer_bytes), dtype),
    )


def cost(*layer_bytes: int, active=None, dtype="BF16", **settings):
    return model_cost(layout_of(*layer_bytes, settings={**PLAIN, **settings}, active=active, dtype=dtype))


def test_a_plain_model_keeps_keys_and_values_of_two_bytes():
    model = cost(4000, 4000)
    assert model.hidden_bytes == 128
    assert [layer.kv_bytes_per_token for layer in model.layers] == [2 * 2 * 8 * 2] * 2
    assert [layer.active_bytes for layer in model.layers] == [4000, 4000]
    assert model.layers[0].flops_per_token == 4000
    assert cost(4000, head_dim=32).layers[0].kv_bytes_per_token == 2 * 2 * 32 * 2


def test_a_layout_of_which_nothing_is_known_plans_with_its_weights():
    model = model_cost(msgspec.structs.replace(layout_of(4000, 4000), figures=None))
    assert [(layer.weight_bytes, layer.cache_bytes(99)) for layer in model.layers] == [(4000, 0)] * 2


def test_the_text_part_of_a_multimodal_model_counts():
    model = cost(4000, hidden_size=9, text_config={"hidden_size": 64}, dtype="F32")
    assert model.hidden_bytes == 256


def test_kinds_of_layers_differ_in_their_cache():
    model = cost(1, 1, 1, layer_types=["full_attention", "sliding_attention", "linear_attention"], sliding_window=16)
    assert [layer.cache_bytes(100) for layer in model.layers] == [6400, 1024, 0]


def test_latent_attention_keeps_one_compressed_row_that_no_group_divides():
    (layer,) = cost(1, kv_lora_rank=32, qk_rope_head_dim=8).layers
    assert layer.kv_bytes_per_token == (32 + 8) * 2
    assert layer.shared(2).kv_bytes_per_token == (32 + 8) * 2


def test_many_requests_visit_more_experts_than_one_does():
    model = cost(900, 500, active=(300, 500), num_experts=8, num_experts_per_tok=2)
    assert [layer.active_bytes for layer in model.layers] == [300, 500]
    routed = (900 - 300) / 0.75
    assert model.layers[0].step_bytes == pytest.approx(900 - routed * 0.75**REQUESTS_PER_STEP, abs=1)
    assert model.layers[1].step_bytes == 500


@pytest.mark.parametrize(("bits", "kind"), [(3, "4-bit"), (4, "4-bit"), (6, "8-bit"), (8, "8-bit")])
def test_a_quantized_parameter_has_its_share_of_scale_and_bias(bits, kind):
    settings = {**PLAIN, "quantization": {"bits": bits, "group_size": 64}}
    figures = figures_from_config(settings, 1, "BF16")
    assert figures.parameter_bytes == pytest.approx(bits / 8 + 4 / 64)
    assert figures.weight_kind == kind


@pytest.mark.parametrize(("dtype", "kind"), [("BF16", "bf16"), ("F16", "bf16"), ("F32", "float32")])
def test_plain_weights_have_a_kind(dtype, kind):
    assert figures_from_config({}, 1, dtype).weight_kind == kind


@pytest.mark.parametrize("odd", [{}, {"layer_types": 3, "sliding_window": "x", "hidden_size": -1, "quantization": []}])
def test_an_odd_configuration_plans_all_the_same(odd):
    assert model_cost(layout_of(10, 10, settings=odd)).layers[0].weight_bytes == 10


def group(rtt_seconds: float, bytes_per_second: float, count: int = 2) -> Plan | Refusal:
    nodes = [PlanNode(name, name, 10_000, NodeSpeed(1e6, 1e9), 0) for name in "abcd"[:count]]
    links = [
        Link(one.node_id, other.node_id, LinkSpeed(rtt_seconds, bytes_per_second)) for one in nodes for other in nodes
    ]
    return make_plan(layout_of(4000, 4000), nodes, mode="tensor", context_tokens=10, links=links)


def test_tensor_mode_shares_what_divides_and_waits_for_two_reduces_a_layer():
    plan = group(2e-3, 1e6)
    assert isinstance(plan, Plan)
    (stage,) = plan.stages
    weights = 4000 + 2000 + 1000 + 70
    assert {(rank.weight_bytes, rank.kv_bytes) for rank in stage.ranks} == {(weights, 640)}
    reduces = 2 * 2 * 2 * (1e-3 + 64 / 1e6)
    assert stage.decode_seconds == pytest.approx((weights - 1000 - 1000 + 640) / 1e6 + 1000 / 1e6 + reduces, rel=0.2)
    assert plan.warning is not None
    assert "slower than one node" in plan.warning


def test_tensor_mode_over_a_fast_link_has_no_warning():
    plan = group(1e-6, 1e9)
    assert isinstance(plan, Plan)
    assert plan.warning is None
    refused = group(1e-6, 1e9, 3)
    assert isinstance(refused, Refusal)
    assert refused.reason == "Not three."


def test_a_group_is_one_stage_of_a_pipeline():
    nodes = [PlanNode(name, name, 12_000, NodeSpeed(1e6, 1e9), 0) for name in "abc"]
    layout, pins = layout_of(*[4000] * 4), Pins(groups=(("b", "c"),))
    plan = make_plan(layout, nodes, (2, 2, 0), context_tokens=10, pins=pins)
    assert isinstance(plan, Plan)
    assert [[rank.node_id for rank in stage.ranks] for stage in plan.stages] == [["a"], ["b", "c"]]
    assert plan.stages[1].ranks[1].weight_bytes == 2 * 3000 + 70
    best = make_plan(layout, nodes, goal="chat", context_tokens=10, pins=pins)
    assert isinstance(best, Plan)
    assert {len(stage.ranks) for stage in best.stages} == {1, 2}
    for wrong, says in (((2, 1, 1), "shares the layers of b"), ((2, 2), "2 parts")):
        refused = make_plan(layout, nodes, wrong, pins=pins)
        assert isinstance(refused, Refusal)
        assert says in refused.reason
