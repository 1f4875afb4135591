"""What the caches may hold: refused, cut, or waited for, and never passed."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import pytest

from runtime.engine.frames import CancelRequest, Open, Sampling, Step, Submit
from runtime.engine.stage import Stage
from runtime.engine.waiting import WAITING_LIMIT
from tests.runtime.engine.models import CONFIGS, build
from tests.runtime.engine.pipeline import Pipeline, greedy

QWEN3 = partial(build, CONFIGS["qwen3"])
SPLIT = (3, 4)


def held_tokens(pipeline: Pipeline) -> int:
    """In the caches of the driver's stage, as the sequences there count them."""
    sequences = pipeline.stages[0]._sequences._open.values()
    return sum(len(sequence.tokens) for sequence in sequences)


def test_a_prompt_that_leaves_no_room_is_refused_with_the_numbers():
    pipeline = Pipeline(QWEN3, SPLIT, context_tokens=40)
    pipeline.submit(0, range(1, 41), 1)
    assert pipeline.done == {0: "refused"}
    assert "40 tokens" in pipeline.refused[0]
    pipeline.submit(1, (), 1)
    assert "empty" in pipeline.refused[1]
    pipeline.submit(2, range(1, 40), 1)
    pipeline.finish()
    assert pipeline.done[2] == "length"


def test_an_answer_that_would_pass_the_context_is_cut_there():
    pipeline = Pipeline(QWEN3, SPLIT, context_tokens=40)
    pipeline.submit(0, range(1, 31), 1000)
    pipeline.finish()
    assert pipeline.done == {0: "length"}
    assert pipeline.tokens[0] == greedy(QWEN3(), tuple(range(1, 31)), 10)


def test_requests_wait_until_there_is_room_for_what_is_to_come():
    pipeline = Pipeline(QWEN3, SPLIT, context_tokens=60, cache_tokens=100)
    prompts = {request: tuple(range(request + 1, request + 21)) for request in range(7)}
    for request, prompt in prompts.items():
        pipeline.submit(request, prompt, 20)
    most = 0
    while len(pipeline.done) < 7:
        assert len(pipeline.driver._requests) <= 2
        if not pipeline.send_next():
            pipeline.moves()[-1]()
        most = max(most, held_tokens(pipeline))
    assert 40 < most <= 100
    assert all(pipeline.tokens[request] == greedy(QWEN3(), prompt, 20) for request, prompt in prompts.items())


def test_kept_sequences_give_way_and_the_one_that_is_used_goes_last():
    pipeline = Pipeline(QWEN3, SPLIT, 100, context_tokens=100)
    pipeline.submit(0, range(1, 31), 10)
    pipeline.submit(1, range(41, 71), 10)
    pipeline.finish()
    assert held_tokens(pipeline) == 78  # each but its last token
    pipeline.submit(2, (*range(1, 31), *pipeline.tokens[0], 5), 59)  # needs all the room there is
    assert pipeline.driver._requests[2].cached_tokens == 39
    pipeline.finish()
    assert pipeline.tokens[2] == greedy(QWEN3(), (*range(1, 31), *pipeline.tokens[0], 5), 59)
    assert held_tokens(pipeline) <= 100


def test_too_many_that_wait_are_refused_and_clients_take_turns():
    pipeline = Pipeline(QWEN3, SPLIT, context_tokens=10)
    pipeline.submit(0, (1, 2), 8)
    for request in range(1, WAITING_LIMIT + 2):
        client = "hasty" if request < WAITING_LIMIT else "patient"
        pipeline.give_submit(Submit(request, (1, 2), 8, (), Sampling(), client=client))
    assert pipeline.done == {WAITING_LIMIT + 1: "refused"}
    assert "later" in pipeline.refused[WAITING_LIMIT + 1]
    while pipeline.done.keys() == {WAITING_LIMIT + 1}:
        if not pipeline.send_next():
            pipeline.moves()[-1]()
    pipeline.give(CancelRequest(1))
    assert pipeline.driver._requests.keys() == {WAITING_LIMIT}  # although hasty asked 255 times before


@pytest.mark.parametrize("name", ["qwen3", "gemma3, sliding windows", "qwen3-next, linear and full attention"])
def test_a_batch_keeps_no_caches_of_the_sequences_that_it_began_with(name):
    stage = Stage(build(CONFIGS[name]), 0, 5)
    for sequence in (0, 1):
        stage.open(Open(sequence, Sampling()))
        stage.run(Step(sequence, (sequence,), (0,), tuple(range(1, 9)), sample=False), {})
    alone = [stage._sequences[sequence].cache for sequence in (0, 1)]
    caches = [weakref.ref(cache) for its in alone if its is not None for cache in its.local]
    assert len(caches) == 10
    alone.clear()
    stage.run(Step(2, (0, 1), (8, 8), (1, 2), sample=False), {})
    gc.collect()
    assert not any(cache() is not None for cache in caches)
