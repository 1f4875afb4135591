"""Requests that decode together, or after one that began alike, get the tokens that each would get alone."""

from __future__ import annotations

from functools import partial

import mlx.core as mx
import pytest

from runtime.engine.random_model import random_model
from tests.matrix.test_staged import SPLITTABLE
from tests.runtime.engine.pipeline import Pipeline, greedy

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(900)]

LENGTHS = (1, 3, 9, 20, 33)
"""Of prompts: shorter and longer than a sliding window, and none like another."""
SPLIT = (1, 5, 1)
NEW_TOKENS = 8
TURN = (5, 6, 7)
CHUNKED_OTHERWISE = {"plamo3"}
"""Text that depends, in mlx-lm alone too, on the chunks in which the prompt went in."""


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(config, id=f"{name}-{variant}")
        for name, variant, config in SPLITTABLE
        if name not in CHUNKED_OTHERWISE
    ],
)
def test_requests_side_by_side_get_the_tokens_that_each_gets_alone(config):
    model = random_model(config)
    mx.eval(model.parameters())
    prompts = [[(place * place + 7 * length) % 128 for place in range(length)] for length in LENGTHS]
    alone = [greedy(model, prompt, NEW_TOKENS) for prompt in prompts]
    pipeline = Pipeline(partial(random_model, config), SPLIT, prefix_token_limit=256)
    for number, prompt in enumerate(prompts):
        pipeline.submit(number, prompt, NEW_TOKENS)
    pipeline.finish()
    assert [pipeline.tokens[number] for number in range(len(prompts))] == alone
    second_turn = [*prompts[-1], *alone[-1], *TURN]
    pipeline.submit(99, second_turn, NEW_TOKENS)
    pipeline.finish()
    assert pipeline.cached[99] > 0
    assert pipeline.tokens[99] == greedy(model, second_turn, NEW_TOKENS)
