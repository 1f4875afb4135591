"""The driver: whatever comes when, every request gets the tokens that it would get alone."""

from __future__ import annotations

import random
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from runtime.engine.frames import CancelRequest
from tests.runtime.engine.models import CONFIGS, build
from tests.runtime.engine.pipeline import Pipeline, greedy

KINDS = list(CONFIGS)
CASES = [(name, (1, 5, 1)) for name in KINDS] + [
    ("llama, tied", (7,)),
    ("qwen3-next, linear and full attention", (3, 4)),
]


@pytest.fixture(scope="module")
def alone():
    """Greedy tokens of the whole model, remembered."""
    models: dict[str, Any] = {}
    known: dict[tuple[str, tuple[int, ...]], list[int]] = {}

    def tokens(name: str, prompt: tuple[int, ...], count: int) -> list[int]:
        if name not in models:
            models[name] = build(CONFIGS[name])
        key = name, prompt
        if len(known.get(key, ())) < count:
            known[key] = greedy(models[name], prompt, count)
        return known[key][:count]

    return tokens


def prompts(seed: int, count: int) -> list[tuple[int, ...]]:
    chance = random.Random(seed)
    return [tuple(chance.randrange(1, 128) for _ in range(chance.choice((1, 2, 5, 9, 20, 70)))) for _ in range(count)]


@pytest.mark.parametrize(("name", "split"), CASES, ids=str)
def test_one_request_alone(alone, name, split):
    pipeline = Pipeline(partial(build, CONFIGS[name]), split)
    prompt = prompts(1, 1)[0]
    pipeline.submit(0, prompt, 40)
    pipeline.finish()
    assert pipeline.tokens[0] == alone(name, prompt, 40)
    assert pipeline.done == {0: "length"}


@pytest.mark.parametrize(("name", "split"), CASES, ids=str)
def test_many_that_come_and_go_at_random(alone, name, split):
    chance = random.Random(f"{name} {split}")
    pipeline = Pipeline(partial(build, CONFIGS[name]), split)
    waiting = list(enumerate(prompts(2, 10)))
    wanted: dict[int, tuple[tuple[int, ...], int]] = {}
    cancelled: set[int] = set()
    while waiting or len(pipeline.done) < len(wanted):
        moves = pipeline.moves()
        dice = chance.random()
        if waiting and dice < 0.15:
            request, prompt = waiting.pop()
            wanted[request] = (prompt, chance.choice((1, 3, 12, 25)))
            pipeline.submit(request, *wanted[request])
        elif dice < 0.17 and (open_requests := sorted(wanted.keys() - pipeline.done.keys())):
            request = chance.choice(open_requests)
            cancelled.add(request)
            pipeline.give(CancelRequest(request))
        elif (dice < 0.5 or not moves) and pipeline.send_next():
            pass
        elif moves:
            chance.choice(moves)()
    for request, (prompt, count) in wanted.items():
        expected = alone(name, prompt, count)
        got = pipeline.tokens[request]
        if request in cancelled and pipeline.done[request] == "cancelled":
            assert got == expected[: len(got)]
        else:
            assert got == expected
    assert all(stage.kv_bytes == 0 for stage in pipeline.stages if not any(wire.frames for wire in pipeline.wires))


@pytest.mark.parametrize("name", KINDS)
def test_a_second_turn_reuses_the_first_and_changes_no_token(alone, name):
    pipeline = Pipeline(partial(build, CONFIGS[name]), (3, 4), prefix_token_limit=1000)
    first = prompts(3, 8)[-1] + tuple(range(1, 30))
    pipeline.submit(0, first, 10)
    pipeline.finish()
    second = (*first, *pipeline.tokens[0], 3, 1, 4, 1, 5)
    pipeline.submit(1, second, 10)
    pipeline.finish()
    assert pipeline.tokens[1] == alone(name, second, 10)
    assert pipeline.cached[1] == len(first) + 9  # the tenth token was never sent

    branch = (*first[:25], 9, 8, 7)  # leaves the first chat half way
    pipeline.submit(2, branch, 10)
    pipeline.submit(3, branch, 10)  # and twice at once
    pipeline.finish()
    assert pipeline.tokens[2] == pipeline.tokens[3] == alone(name, branch, 10)
    if name in ("llama, tied", "llama, untied", "qwen2", "qwen3", "qwen3-moe"):
        assert pipeline.cached[2] == pipeline.cached[3] == 25


def test_an_end_token_ends_and_is_not_reported(alone):
    prompt = prompts(4, 1)[0]
    expected = alone("qwen3", prompt, 30)
    end = expected[12]
    pipeline = Pipeline(partial(build, CONFIGS["qwen3"]), (3, 4))
    pipeline.submit(0, prompt, 30, (end,))
    pipeline.finish()
    assert pipeline.tokens[0] == expected[: expected.index(end)]
    assert pipeline.done[0] == "stop"


def test_a_long_prompt_holds_nobody_for_more_than_one_chunk():
    pipeline = Pipeline(partial(build, CONFIGS["qwen3"]), (3, 4))
    pipeline.submit(0, (1, 2, 3), 100)
    while not pipeline.tokens[0]:
        if not pipeline.send_next():
            pipeline.moves()[-1]()
    pipeline.submit(1, tuple(range(1, 121)) * 2, 1)
    between = []
    while 1 not in pipeline.done:
        before = len(pipeline.tokens[0])
        chunks = pipeline.driver._flights.chunk_count
        if not pipeline.send_next():
            pipeline.moves()[-1]()
        if pipeline.driver._flights.chunk_count > chunks:
            between.append(before)
    assert len(between) > 2
    assert all(later > earlier for earlier, later in pairwise(between[1:]))


def test_a_cancel_frees_its_row_within_two_steps():
    pipeline = Pipeline(partial(build, CONFIGS["qwen3"]), (3, 4))
    for request in range(3):
        pipeline.submit(request, (1, 2, 3), 1000)
    while min(map(len, pipeline.tokens.values())) < 5:
        if not pipeline.send_next():
            pipeline.moves()[-1]()
    pipeline.give(CancelRequest(1))
    sent = pipeline.driver._flights.sent_count
    while pipeline.driver._flights.sent_count < sent + 2:
        if not pipeline.send_next():
            pipeline.moves()[-1]()
    while moves := pipeline.moves():
        moves[0]()
    assert pipeline.done == {1: "cancelled"}
    assert pipeline.driver._groups.member_count == 2
    rows = {id(sequence) for stage in pipeline.stages for sequence in stage._sequences._open.values()}
    assert len(rows) == 2 * 2
