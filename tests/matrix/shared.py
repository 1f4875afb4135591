"""Models that two, three or four ranks share, on a real MLX ring: which, how large, and what must come of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck

from runtime.models.tensor_mode.bytes import is_divided
from runtime.models.tensor_mode.refusal import divides_head, tensor_refusal
from runtime.models.tensor_mode.types import ALIASES, SHARINGS, WRAPPERS
from tests.matrix.configs import all_variants
from tests.runtime.engine.tiny import grown

if TYPE_CHECKING:
    from tests.matrix.variant import Config

FLOAT32_TOLERANCE = 1e-4
"""In standard deviations of the logits."""
MANY_REFUSED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much)
_LAYER = re.compile(r".*?\b(?:layers|h|blocks)\.\d+\.")

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
"""One of each kind of layer that is shared."""
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
CASES = [
    *((2, *each) for each in SHARED_VARIANTS),
    *((3, *each) for each in ONE_OF_EACH_TYPE),
    *((4, *each) for each in KINDS.values()),
]
"""Ranks, type and variant: everything on two, each type on three, each kind of layer on four."""


def shareable(config: Config, ranks: int) -> Config:
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


def planned_bytes(sizes: dict[str, int], config: Config, ranks: int) -> int:
    """What a rank should hold of parameters of these sizes."""
    return sum(count // ranks if _is_shared(name, config) else count for name, count in sizes.items())


def _is_shared(name: str, config: Config) -> bool:
    if (layer := _LAYER.match(name)) is not None:
        return is_divided(name[layer.end() :])
    return "lm_head" in name and divides_head(config)
