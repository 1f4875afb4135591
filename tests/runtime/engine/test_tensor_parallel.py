"""Ranks that share each layer compute what the whole model computes; what they could not share is refused before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runtime.models.layout import read_layout
from runtime.models.tensor_mode.refusal import tensor_refusal
from runtime.planning.plan import Plan, PlanNode, make_plan
from tests.matrix.configs import CONFIGS
from tests.matrix.shared import KINDS, MANY_REFUSED, assert_identical, shareable
from tests.runtime.engine.tiny import build, grown, save

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runtime.engine.ring import Ring

ON_THREE_RANKS = ("llama", "qwen3-next", "qwen3.5-moe, 4 bits", "phi3")


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_compute_what_the_whole_model_computes(ring, kind):
    model_type, variant = KINDS[kind]
    assert_identical(ring(2).compare(shareable(CONFIGS[model_type][variant], 2)))


def test_qwen3_5_repeats_key_value_heads_for_more_ranks(ring):
    config = {**CONFIGS["qwen3_5"]["text untied"], "num_key_value_heads": 1}
    assert tensor_refusal(config, 2) is None
    assert_identical(ring(2).compare(config))


@st.composite
def tiny_models(draw: st.DrawFn) -> dict[str, Any]:
    """Configurations of several kinds, many of which two or three ranks cannot share."""
    kind = draw(st.sampled_from(["llama", "qwen3_moe", "qwen3_next", "phi3", "olmo2", "gemma3_text", "qwen3_5"]))
    key_value_heads = draw(st.sampled_from([1, 2, 3, 4, 6]))
    heads = key_value_heads * draw(st.integers(1, 3))
    head_size = draw(st.sampled_from([8, 16, 32]))
    changes = {
        "hidden_size": heads * head_size,
        "head_dim": head_size,
        "intermediate_size": draw(st.integers(1, 8)) * draw(st.sampled_from([1, 12, 32])),
        "moe_intermediate_size": draw(st.integers(1, 6)) * draw(st.sampled_from([1, 32])),
        "shared_expert_intermediate_size": draw(st.integers(1, 6)) * draw(st.sampled_from([1, 32])),
        "linear_num_key_heads": (linear_heads := draw(st.integers(1, 4))),
        "linear_num_value_heads": linear_heads * draw(st.integers(1, 2)),
        "vocab_size": draw(st.sampled_from([128, 129, 132])),
        "num_hidden_layers": 4,
        "num_attention_heads": heads,
        "num_key_value_heads": key_value_heads,
    }
    config = {**next(iter(CONFIGS[kind].values())), **changes}
    if draw(st.booleans()) and config["hidden_size"] % 32 == 0:
        config["quantization"] = {"group_size": 32, "bits": draw(st.sampled_from([4, 8]))}
        if draw(st.booleans()):
            config["quantization"]["model.layers.1.mlp.down_proj"] = {"group_size": 64, "bits": 8}
    return config


def assert_right_unless_refused(ring: Callable[[int], Ring], config: dict[str, Any], ranks: int) -> None:
    assume(tensor_refusal(config, ranks) is None)
    answers = ring(ranks).compare(config)
    # Chance also makes models in which two tokens are equally likely, or in which any rounding changes everything.
    assume(all("error" in answer or (answer["margin"] > 1e-3 and answer["rounding"] < 1e-3) for answer in answers))
    assert_identical(answers)


@settings(max_examples=8, suppress_health_check=MANY_REFUSED)
@given(config=tiny_models())
def test_whatever_is_not_refused_is_right(ring, config):
    assert_right_unless_refused(ring, config, 2)


@pytest.mark.parametrize(
    ("model_type", "variant"),
    [
        ("llama", "untied"),
        ("llama", "four bits"),
        ("qwen3_moe", "untied"),
        ("qwen3_next", "full every fourth"),
        ("qwen3_5", "text untied"),
        ("deepseek_v32", "experts"),
        ("phi3", "untied"),
        ("olmo2", "untied"),
    ],
)
def test_a_rank_holds_what_is_planned(ring, tmp_path, model_type, variant):
    config = grown(shareable(CONFIGS[model_type][variant], 2), 2)
    folder = tmp_path / "Tiny"
    save(build(config), config, folder)
    nodes = [PlanNode(name, name, 2**40) for name in ("one", "two")]
    plan = make_plan(read_layout(folder), nodes, mode="tensor")
    assert isinstance(plan, Plan), plan
    for rank, answer in zip(plan.stages[0].ranks, ring(2).load(folder), strict=True):
        assert answer["held_bytes"] == pytest.approx(rank.weight_bytes, rel=0.01), answer


def test_three_ranks_hold_the_demo_model_as_planned(ring, demo_model):
    plan = make_plan(
        read_layout(demo_model), [PlanNode(name, name, 2**40) for name in ("one", "two", "three")], mode="tensor"
    )
    assert isinstance(plan, Plan), plan
    for rank, answer in zip(plan.stages[0].ranks, ring(3).load(demo_model), strict=True):
        assert answer["held_bytes"] == pytest.approx(rank.weight_bytes, rel=0.01), answer


@pytest.mark.parametrize("kind", ON_THREE_RANKS)
def test_three_ranks_do_too(ring, kind):
    model_type, variant = KINDS[kind]
    assert_identical(ring(3).compare(shareable(CONFIGS[model_type][variant], 3)))


@pytest.mark.matrix
@pytest.mark.timeout(600)
@pytest.mark.parametrize("ranks", [2, 3])
def test_whatever_is_not_refused_is_right_in_many_more_cases(ring, ranks):
    @settings(max_examples=80, suppress_health_check=MANY_REFUSED)
    @given(config=tiny_models())
    def check(config):
        assert_right_unless_refused(ring, config, ranks)

    check()
