"""Ranks that share each layer compute what the whole model computes; what they could not share is refused before."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from runtime.models.layout import read_layout
from runtime.models.tensor_mode.bytes import is_divided
from runtime.models.tensor_mode.refusal import divides_head, tensor_refusal
from runtime.models.tensor_mode.types import ALIASES, SHARINGS, WRAPPERS
from runtime.planning.plan import Plan, PlanNode, make_plan
from tests.matrix.configs import CONFIGS, all_variants
from tests.runtime.engine.ring import Ring
from tests.runtime.engine.tiny import build, grown, save

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FLOAT32_TOLERANCE = 1e-4
"""In standard deviations of the logits."""
_LAYER = re.compile(r".*?\b(?:layers|h|blocks)\.\d+\.")


@pytest.fixture(scope="session")
def ring() -> Iterator[Callable[[int], Ring]]:
    """Rings by their size, each started once. Only one runs at a time: a rank that waits in MLX's ring spins."""
    rings: dict[int, Ring] = {}

    def of(size: int) -> Ring:
        for other in rings.values():
            if other.size != size:
                other.close()
        return rings.setdefault(size, Ring(size))

    yield of
    for each in rings.values():
        each.close()


def shareable(config: dict[str, Any], ranks: int) -> dict[str, Any]:
    """``config``, with more heads and features if it takes that for so many ranks to share them."""
    for factor in (1, 2, 3, 4, 9):
        larger = grown(config, factor)
        if tensor_refusal(larger, ranks) is None:
            return larger
    pytest.fail(f"refused at any size: {tensor_refusal(config, ranks)}")


def assert_identical(answers: list[dict[str, Any]]) -> None:
    """Every rank has the whole model's tokens and its logits, up to rounding.

    Models with recurrent layers blow rounding up, so the whole model with weights moved by the rounding of a float32
    is the measure.
    """
    for answer in answers:
        assert "error" not in answer, answer.get("trace", answer["error"])
        assert answer["shared_tokens"] == answer["tokens"]
        assert answer["difference"] <= max(FLOAT32_TOLERANCE, 5 * answer["rounding"])
        assert answer["rounding"] < 0.01, "a model this sensitive proves nothing"


KINDS = {
    "llama": ("llama", "untied"),
    "llama, tied": ("llama", "tied"),
    "llama, 4 bits": ("llama", "four bits"),
    "llama, 8 bits": ("llama", "eight bits"),
    "llama, mixed bits": ("llama", "mixed bits"),
    "qwen3-moe": ("qwen3_moe", "some dense"),
    "qwen3-moe, mixed bits": ("qwen3_moe", "mixed bits"),
    "qwen3-next": ("qwen3_next", "full every fourth"),
    "qwen3-next, 4 bits": ("qwen3_next", "four bits"),
    "qwen3.5": ("qwen3_5", "text untied"),
    "qwen3.5, pictures": ("qwen3_5", "pictures tied"),
    "qwen3.5-moe": ("qwen3_5_moe", "text"),
    "qwen3.5-moe, pictures": ("qwen3_5_moe", "pictures"),
    "qwen3.5-moe, 4 bits": ("qwen3_5_moe", "four bits"),
    "deepseek-v3.2": ("deepseek_v32", "experts"),
    "gpt-oss": ("gpt_oss", "sliding"),
    "gemma3, pictures": ("gemma3", "sliding"),
    "gemma3, 4 bits": ("gemma3_text", "four bits"),
    "phi3": ("phi3", "untied"),
    "phi3, 4 bits": ("phi3", "four bits"),
    "granite": ("granite", "untied"),
    "olmo2": ("olmo2", "untied"),
    "gpt-neox, heads side by side": ("gpt_neox", "parallel"),
    "qwen2-vl": ("qwen2_vl", "tied"),
}
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


MANY_REFUSED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much)


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


# The long matrix -----------------------------------------------------------------------------------------------------

REFUSED_VARIANTS = {
    ("gpt_bigcode", "tied"),  # a single key-value head
    ("granitemoehybrid", "dense"),  # Mamba layers
    ("granitemoehybrid", "experts"),
}
SHARED_VARIANTS = [
    (name, variant)
    for name, variant, config in all_variants()
    if (inside := ALIASES.get(config["model_type"], config["model_type"])) in {*SHARINGS, *WRAPPERS}
    and (inside, variant) not in REFUSED_VARIANTS
]


ONE_OF_EACH_TYPE = list({name: (name, variant) for name, variant in reversed(SHARED_VARIANTS)}.values())


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("ranks", "model_type", "variant"),
    [(2, *each) for each in SHARED_VARIANTS] + [(3, *each) for each in ONE_OF_EACH_TYPE],
    ids=str,
)
def test_the_matrix(ring, ranks, model_type, variant):
    config = shareable(CONFIGS[model_type][variant], ranks)
    answers = ring(ranks).compare(config)
    assert_identical(answers)
    for answer in answers:
        planned = sum(count // ranks if _is_shared(name, config) else count for name, count in answer["sizes"].items())
        assert answer["held_bytes"] == pytest.approx(planned, rel=0.01)


@pytest.mark.matrix
@pytest.mark.timeout(600)
@pytest.mark.parametrize("ranks", [2, 3])
def test_whatever_is_not_refused_is_right_in_many_more_cases(ring, ranks):
    @settings(max_examples=80, suppress_health_check=MANY_REFUSED)
    @given(config=tiny_models())
    def check(config):
        assert_right_unless_refused(ring, config, ranks)

    check()


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
def test_four_ranks_do_too(ring, kind):
    model_type, variant = KINDS[kind]
    assert_identical(ring(4).compare(shareable(CONFIGS[model_type][variant], 4)))


@pytest.mark.matrix
def test_granite_4_with_experts_and_without_mamba(ring):
    config = {**CONFIGS["granitemoehybrid"]["experts"], "layer_types": ["attention"] * 7}
    assert_identical(ring(2).compare(shareable(config, 2)))


def test_more_than_ninety_types_are_in_the_matrix():
    assert len({name for name, _variant in SHARED_VARIANTS} & {*SHARINGS, *WRAPPERS}) > 90


def _is_shared(name: str, config: dict[str, Any]) -> bool:
    if (layer := _LAYER.match(name)) is not None:
        return is_divided(name[layer.end() :])
    return "lm_head" in name and divides_head(config)
