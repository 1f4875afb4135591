"""Masked requests: each token waits for its mask, and nothing else waits with it."""

from __future__ import annotations

from functools import partial

import mlx.core as mx
import pytest
from mlx_lm.models.cache import make_prompt_cache

from runtime.engine.frames import CancelRequest, Mask, Sampling, Submit
from runtime.engine.hop import HopError
from tests.runtime.engine.models import CONFIGS, build
from tests.runtime.engine.pipeline import Pipeline, greedy

PROMPT = tuple(range(3, 60))
EVEN = sum(1 << token for token in range(0, 128, 2)).to_bytes(16, "little")
ODD = sum(1 << token for token in range(1, 128, 2)).to_bytes(16, "little")


def masked(request: int, max_tokens: int = 6, prompt: tuple[int, ...] = PROMPT) -> Submit:
    return Submit(request, prompt, max_tokens, (), Sampling(), masked=True)


def new_pipeline() -> Pipeline:
    return Pipeline(partial(build, CONFIGS["qwen3"]), (3, 4))


def rest(pipeline: Pipeline) -> None:
    """Go on until nothing can happen any more."""
    while pipeline.send_next() or pipeline.moves():
        for move in pipeline.moves():
            move()


def alternating(count: int) -> list[int]:
    """What the whole model says when even and odd tokens are allowed in turn."""
    model = build(CONFIGS["qwen3"])
    cache = make_prompt_cache(model)
    model(mx.array([PROMPT[:-1]]), cache=cache)
    tokens = [PROMPT[-1]]
    for index in range(count):
        logits = model(mx.array([tokens[-1:]]), cache=cache)[0, -1]
        best: int = mx.argmax(logits[index % 2 :: 2]).item()  # type: ignore[assignment]
        tokens.append(2 * best + index % 2)
    return tokens[1:]


def test_each_token_waits_for_its_mask_and_obeys_it():
    pipeline = new_pipeline()
    pipeline.give_submit(masked(0))
    for index in range(6):
        rest(pipeline)
        assert len(pipeline.tokens[0]) == index
        pipeline.give(Mask(0, index, (EVEN, ODD)[index % 2]))
    rest(pipeline)
    assert pipeline.tokens[0] == alternating(6)
    assert pipeline.done == {0: "length"}


def test_the_prompt_goes_in_before_the_first_mask_and_others_go_on():
    pipeline = new_pipeline()
    pipeline.give_submit(masked(0))
    rest(pipeline)
    assert pipeline.prefilled[0] == len(PROMPT) - 1
    pipeline.submit(1, (5, 6, 7), 9)
    rest(pipeline)
    assert pipeline.tokens[1] == greedy(build(CONFIGS["qwen3"]), (5, 6, 7), 9)
    pipeline.give(Mask(0, 0, b""))
    rest(pipeline)
    assert pipeline.tokens[0] == greedy(build(CONFIGS["qwen3"]), PROMPT, 1)


def test_a_prompt_goes_in_while_every_answer_waits_for_masks():
    pipeline = new_pipeline()
    pipeline.give_submit(masked(0))
    pipeline.give(Mask(0, 0, EVEN))
    rest(pipeline)
    pipeline.submit(1, tuple(range(1, 100)), 1)
    rest(pipeline)
    assert pipeline.prefilled[1] == 98
    pipeline.give(CancelRequest(0))
    rest(pipeline)
    assert pipeline.done == {0: "cancelled", 1: "length"}


def test_a_mask_that_allows_nothing_ends_the_answer():
    pipeline = new_pipeline()
    pipeline.give_submit(masked(0))
    pipeline.give(Mask(0, 0, EVEN))
    rest(pipeline)
    pipeline.give(Mask(0, 1, bytes(16)))
    assert pipeline.done == {0: "stop"}
    pipeline.give(Mask(0, 1, EVEN))  # was on its way


def test_a_mask_may_come_before_its_request_has_room():
    pipeline = Pipeline(partial(build, CONFIGS["qwen3"]), (3, 4), context_tokens=100)
    pipeline.submit(0, PROMPT, 20)
    pipeline.give_submit(masked(1, max_tokens=1))
    pipeline.give(Mask(1, 0, ODD))
    pipeline.finish()
    assert pipeline.tokens[1][0] % 2 == 1


@pytest.mark.parametrize("mask", [Mask(0, 1, EVEN), Mask(1, 0, EVEN)], ids=["another token", "not masked"])
def test_a_mask_for_something_else_is_a_fault(mask):
    pipeline = new_pipeline()
    pipeline.give_submit(masked(0))
    pipeline.submit(1, PROMPT, 5)
    with pytest.raises(HopError, match="a mask came for"):
        pipeline.give(mask)


def test_masked_and_free_requests_side_by_side_get_what_each_gets_alone():
    pipeline = new_pipeline()
    model = build(CONFIGS["qwen3"])
    for request in range(4):
        pipeline.submit(request, PROMPT[request:], 12)
    pipeline.give_submit(masked(9))
    sent = 0
    while len(pipeline.done) < 5:
        if sent == len(pipeline.tokens[9]) < 6:
            pipeline.give(Mask(9, sent, (EVEN, ODD)[sent % 2]))
            sent += 1
        for move in pipeline.moves():
            move()
        pipeline.send_next()
    assert pipeline.tokens[9] == alternating(6)
    assert [pipeline.tokens[request] for request in range(4)] == [
        greedy(model, PROMPT[request:], 12) for request in range(4)
    ]
