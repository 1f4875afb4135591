"""Sampling: what a token depends on, and what it does not."""

from __future__ import annotations

import math
from functools import partial

import mlx.core as mx
import pytest

from runtime.engine.frames import Sampling
from runtime.engine.sampling import Sampler
from tests.runtime.engine.models import CONFIGS, build
from tests.runtime.engine.pipeline import Pipeline

SEEDED = Sampling(temperature=1.2, top_p=0.95, repetition_penalty=1.1, seed=7)
PROMPT = tuple(range(3, 40))


def choose(sampler: Sampler, tokens: list[int]) -> int:
    logits = mx.sin(mx.arange(500) * 0.7)[None]
    return sampler(logits, tokens).token.item()  # type: ignore[return-value]


def test_a_token_depends_on_seed_and_position_and_not_on_earlier_calls():
    sampler = Sampler(Sampling(temperature=1.0, seed=3))
    in_order = [choose(sampler, [0] * length) for length in range(1, 40)]
    assert [choose(Sampler(Sampling(temperature=1.0, seed=3)), [0] * length) for length in range(1, 40)] == in_order
    assert choose(sampler, [5]) == in_order[0]
    assert len(set(in_order)) > 20
    assert [choose(Sampler(Sampling(temperature=1.0, seed=4)), [0] * length) for length in range(1, 40)] != in_order


def test_draws_of_neighbouring_seeds_and_positions_are_independent():
    """Of two values with equal chances: agreement of neighbours is about one half, as for a fair coin."""
    logits = mx.zeros((1, 2))

    def draw(seed: int, position: int) -> int:
        return Sampler(Sampling(temperature=1.0, seed=seed))(logits, [0] * position).token.item()  # type: ignore[return-value]

    draws = [[draw(seed, position) for position in range(1, 41)] for seed in range(40)]
    ones = sum(map(sum, draws)) / 1600
    across = sum(draws[a][b] == draws[a + 1][b] for a in range(39) for b in range(40)) / 1560
    along = sum(draws[a][b] == draws[a][b + 1] for a in range(40) for b in range(39)) / 1560
    assert all(abs(share - 0.5) < 0.07 for share in (ones, across, along))  # more than five standard deviations


@pytest.mark.parametrize("cut", [1, 9, 23])
def test_a_request_that_goes_on_in_a_rebuilt_pipeline_says_the_same(cut):
    """As after a lost node: prompt and answer so far are submitted again, over another split."""
    undisturbed = Pipeline(partial(build, CONFIGS["qwen3"]), (3, 4))
    undisturbed.submit(0, PROMPT, 40, sampling=SEEDED)
    undisturbed.submit(1, (9, 8, 7), 25)  # something else that runs
    undisturbed.finish()
    text = undisturbed.tokens[0]
    rebuilt = Pipeline(partial(build, CONFIGS["qwen3"]), (1, 4, 2))
    rebuilt.submit(5, (*PROMPT, *text[:cut]), 40 - cut, sampling=SEEDED)
    rebuilt.finish()
    assert rebuilt.tokens[5] == text[cut:]


def test_logprobs_are_those_of_the_choice_and_of_the_likeliest():
    logits = mx.array([[0.0, 2.0, 1.0, -1.0, 3.0]])
    sampler = Sampler(Sampling(temperature=0.7, top_k=1, logprobs=2, logit_bias=((4, -9.0), (0, 9.0))))
    total = math.log(sum(math.exp(value) for value in (9, 2, 1, -1, -6)))
    choice = sampler(logits, [1])
    reported = choice.logprobs()
    assert reported is not None
    assert choice.token.item() == 0
    assert reported.chosen == pytest.approx(9 - total, abs=1e-5)
    assert [token for token, _ in reported.top] == [0, 1]
    assert [value for _, value in reported.top] == pytest.approx([9 - total, 2 - total], abs=1e-5)
    alone = Sampler(Sampling(logprobs=0))(logits, [1]).logprobs()
    assert alone is not None
    assert alone.top == ()
    assert Sampler(Sampling())(logits, [1]).logprobs() is None


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_mask_leaves_only_what_it_allows(temperature):
    logits = mx.sin(mx.arange(20) * 0.7)[None]
    for allowed in ({3, 9, 17}, {0}, {19}):
        mask = sum(1 << token for token in allowed).to_bytes(3, "little")
        for position in range(1, 8):
            sampler = Sampler(Sampling(temperature=temperature, logprobs=5))
            choice = sampler(logits, [1] * position, mask)
            reported = choice.logprobs()
            assert choice.token.item() in allowed
            assert reported is not None
            assert {token for token, _ in reported.top} == allowed
            assert sum(math.exp(value) for _, value in reported.top) == pytest.approx(1, abs=1e-5)


def test_tokens_beyond_the_end_of_a_mask_may_not_be_chosen():
    """Models have rows for tokens that no tokenizer knows, which a mask has no bits for."""
    logits = mx.arange(20.0)[None]
    assert Sampler(Sampling())(logits, [1], b"\xff").token.item() == 7
    assert Sampler(Sampling())(logits, [1], b"\xff" * 9).token.item() == 19
