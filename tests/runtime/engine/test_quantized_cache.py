"""The 8-bit KV cache: what mlx-lm's own says, on every split, or a sentence why not."""

from __future__ import annotations

from functools import partial
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step

from runtime.engine.stage import Stage
from runtime.errors import PomonaError
from tests.runtime.engine.models import CONFIGS, build
from tests.runtime.engine.pipeline import Pipeline

HYBRID = "qwen3-next, linear and full attention"
WIDE: dict[str, dict[str, Any]] = {
    name: {**CONFIGS[name], "head_dim": head_dim}
    for name, head_dim in (("qwen3", 64), (HYBRID, 64), ("llama, untied", 64))
}
PROMPT = tuple(range(2, 62))


def wanted(config: dict[str, Any], prompt: tuple[int, ...], count: int) -> list[int]:
    """By mlx-lm, alone, with a cache that is quantized from the first step on."""
    steps = generate_step(mx.array(prompt), build(config), max_tokens=count, kv_bits=8, quantized_kv_start=0)
    return [int(token) for token, _logprobs in steps]


@pytest.mark.parametrize("name", WIDE)
def test_tokens_equal_mlx_lm_s_with_the_same_cache(name):
    """Each prompt goes in as one chunk, as there: the first is the first, and the others are short."""
    config = WIDE[name]
    pipeline = Pipeline(partial(build, config), (1, 5, 1), kv_bits=8)
    prompts = {0: PROMPT, 1: PROMPT[:3], 2: PROMPT[7:15]}
    for request, prompt in prompts.items():
        pipeline.submit(request, prompt, 40)
    pipeline.finish()
    for request, prompt in prompts.items():
        assert pipeline.tokens[request] == wanted(config, prompt, 40)


def test_a_kept_sequence_is_cut_and_reused():
    config = WIDE["qwen3"]
    pipeline = Pipeline(partial(build, config), (3, 4), 1000, kv_bits=8)
    pipeline.submit(0, PROMPT, 10)
    pipeline.finish()
    pipeline.submit(1, (*PROMPT[:50], 9, 9), 10)
    pipeline.finish()
    assert pipeline.cached[1] == 50
    assert pipeline.tokens[1] == wanted(config, (*PROMPT[:50], 9, 9), 10)


def test_it_takes_about_half_of_the_memory():
    usual = Pipeline(partial(build, WIDE["qwen3"]), (7,), 1000)
    small = Pipeline(partial(build, WIDE["qwen3"]), (7,), 1000, kv_bits=8)
    for pipeline in (usual, small):
        pipeline.submit(0, PROMPT, 4)
        pipeline.finish()
    # The tiny model's keys are float32: 8 bits and two float32 for each 64 numbers are 9 of 32.
    assert small.stages[0].kv_bytes == pytest.approx(usual.stages[0].kv_bytes * 9 / 32, rel=0.01)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("mamba2", "no cache that 8 bits make smaller"), ("qwen3", "16 numbers")],
)
def test_a_model_that_cannot_is_refused_before_it_is_ready(name, reason):
    stage = Stage(build(CONFIGS[name]), 0, 3, kv_bits=8)
    with pytest.raises(PomonaError, match=reason):
        stage.warm_up()
