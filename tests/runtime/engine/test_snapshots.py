"""Snapshots: chats that share a beginning compute it once, also where caches cannot be cut, and no token changes."""

from __future__ import annotations

import random
from functools import partial

import pytest

from tests.runtime.engine.models import CONFIGS, build
from tests.runtime.engine.pipeline import Pipeline, greedy

UNCUTTABLE = ["qwen3-next, linear and full attention", "gemma3, sliding windows", "mamba2"]
SYSTEM = tuple(random.Random(5).randrange(1, 128) for _ in range(150))


def chat(seed: int) -> tuple[int, ...]:
    """A system prompt of 150 tokens and a question."""
    chance = random.Random(seed)
    return (*SYSTEM, *(chance.randrange(1, 128) for _ in range(chance.randrange(10, 40))))


@pytest.mark.parametrize("name", UNCUTTABLE)
def test_a_second_chat_with_the_same_system_prompt_begins_late(name):
    model = build(CONFIGS[name])
    pipeline = Pipeline(partial(build, CONFIGS[name]), (3, 1, 3), 4000)
    for request in range(4):
        pipeline.submit(request, chat(request), 8)
        pipeline.finish()
        assert pipeline.tokens[request] == greedy(model, chat(request), 8)
    assert pipeline.cached[0] == 0
    assert pipeline.cached[1] >= 75
    assert pipeline.cached[2] == pipeline.cached[3] == 150


@pytest.mark.parametrize("name", UNCUTTABLE)
def test_another_answer_to_the_same_chat_computes_one_token(name):
    pipeline = Pipeline(partial(build, CONFIGS[name]), (3, 4), 4000)
    for request in range(2):
        pipeline.submit(request, chat(1), 8)
        pipeline.finish()
    assert pipeline.tokens[0] == pipeline.tokens[1]
    assert pipeline.driver._requests == {}
    assert pipeline.cached.get(1, len(chat(1)) - 1) == len(chat(1)) - 1  # nothing was left to prefill


@pytest.mark.parametrize("name", UNCUTTABLE)
def test_snapshots_are_bounded_and_the_same_on_every_stage(name):
    pipeline = Pipeline(partial(build, CONFIGS[name]), (2, 5), 400, context_tokens=400)
    model = build(CONFIGS[name])
    for request in range(6):
        pipeline.submit(request, chat(request % 3), 4)
    while len(pipeline.done) < 6:
        if not pipeline.send_next():
            pipeline.moves()[-1]()
        first, second = (
            [len(sequence.tokens) for sequence in stage._sequences._open.values()] for stage in pipeline.stages
        )
        assert sum(first) <= 400
        # A copy is made before what gives way to it is dropped. Here that is seen: frames are delivered one by one.
        assert sum(second) <= 400 + max(second, default=0)
    while moves := pipeline.moves():
        moves[0]()
    open_there = [set(stage._sequences._open) for stage in pipeline.stages]
    assert open_there == [set(pipeline.driver._caches._prefixes._kept)] * 2
    assert all(pipeline.tokens[request] == greedy(model, chat(request % 3), 4) for request in range(6))
