"""Requests that grow past the room: who gives way, and that nobody's answer changes by it."""

from __future__ import annotations

import random
from functools import partial

import pytest

from runtime.engine.frames import CancelRequest, Mask, Sampling, Submit
from runtime.engine.orders import CacheLimits
from runtime.engine.room import GROWTH_TOKENS, Room
from tests.runtime.engine.models import CONFIGS, build
from tests.runtime.engine.pipeline import Pipeline, greedy

SPLIT = (3, 4)
KINDS = ["qwen3", "gemma3, sliding windows", "qwen3-next, linear and full attention"]


def submit(number: int, prompt_tokens: int = 10, max_tokens: int = 1000) -> Submit:
    return Submit(number, tuple(range(1, prompt_tokens + 1)), max_tokens, (), Sampling())


def new_room(tokens: int) -> Room:
    return Room(CacheLimits(tokens))


@pytest.fixture
def little_growth(monkeypatch):
    """Requests begin while others have little left, so that they are paused often."""
    monkeypatch.setattr("runtime.engine.room.GROWTH_TOKENS", 4)


def test_many_that_may_fill_the_context_begin_together():
    room = new_room(8192)
    for number in range(40):
        room.wait(submit(number, max_tokens=8000))
    begun = 0
    while room.begin_next() is not None:
        begun += 1
    assert begun == 8192 // (10 + GROWTH_TOKENS)


def test_the_newest_gives_way_and_begins_again_before_those_that_wait():
    room = new_room(600)
    for number in range(4):
        room.wait(submit(number))
    first, second = room.begin_next(), room.begin_next()
    assert first is not None
    assert second is not None
    assert room.begin_next() is None
    first.generated = second.generated = 291
    assert room.spare_tokens == -2
    assert room.newest() is second
    room.pause(second)
    assert (room.spare_tokens, room.newest(), room.begin_next()) == (299, None, None)
    assert room.next_index(1) == 291
    assert 1 in room
    assert room.end(0) is first
    assert room.begin_next() is second
    assert room.begin_next() is None  # the third still waits
    assert room.next_index(2) == 0


def test_one_that_is_paused_can_be_ended():
    room = new_room(600)
    for number in range(2):
        room.wait(submit(number))
        room.begin_next()
    room.pause(room.active[1])
    assert room.end(1) is None
    assert 1 not in room
    assert room.next_index(1) is None


@pytest.mark.parametrize("name", KINDS)
def test_answers_that_outgrow_the_room_are_those_of_a_run_alone(little_growth, name):
    model = build(CONFIGS[name])
    pipeline = Pipeline(partial(build, CONFIGS[name]), SPLIT, 90, context_tokens=90)
    prompts = {request: tuple(range(request + 1, request + 9 + request)) for request in range(6)}
    for request, prompt in prompts.items():
        pipeline.submit(request, prompt, 40)
    paused, most = set(), 0
    while len(pipeline.done) < 6:
        if not pipeline.send_next():
            pipeline.moves()[-1]()
        most = max(most, sum(len(held.tokens) for held in pipeline.stages[0]._sequences._open.values()))
        paused |= {request.submit.request for request in pipeline.driver._room._paused}
    assert len(paused) >= 3
    assert most <= 90
    for request, prompt in prompts.items():
        assert pipeline.tokens[request] == greedy(model, prompt, 40)


@pytest.mark.parametrize("seed", [1, 6, 11])
def test_random_requests_masks_and_cancels_in_a_small_room(little_growth, monkeypatch, seed):
    """Steps take any time, by which the driver forms other groups: seeds 1 and 6 found rows that were out of date."""
    chance = random.Random(seed)
    clock = Clock(random.Random(seed))
    monkeypatch.setattr("runtime.engine.rank.time", clock)
    new_model = partial(build, CONFIGS["qwen3"])
    alone = Pipeline(new_model, (7,))
    pipeline = Pipeline(new_model, (2, 5), 70, context_tokens=70)
    even = bytes([0b01010101]) * 16
    last: tuple[int, ...] = ()
    for number in range(24):
        prompt = tuple(chance.randrange(1, 128) for _ in range(chance.randrange(1, 20)))
        if number % 5 == 4:
            prompt = (*last[:-1], *prompt[:3])
        last = prompt
        sampling = Sampling(temperature=chance.choice([0.0, 0.9]), seed=number)
        sent = Submit(number, prompt, chance.randrange(1, 45), (), sampling, masked=number % 6 == 5)
        alone.give_submit(sent)
        pipeline.give_submit(sent)
    asked = dict.fromkeys([number for number in pipeline.tokens if number % 6 == 5], 0)
    alone_asked = dict(asked)
    paused, cancel_after = 0, 3
    while len(alone.done) < 24:
        give_masks(alone, alone_asked, even)
        if not alone.send_next():
            assert not alone.moves()
    while len(pipeline.done) < 24:
        give_masks(pipeline, asked, even)
        moves = pipeline.moves()
        if chance.random() < 0.3:
            pipeline.build_ahead()
        went = not (moves and chance.random() < 0.6) and pipeline.send_next()
        if moves and not went:
            chance.choice(moves)()
        paused += bool(pipeline.driver._room._paused)
        if len(pipeline.done) >= cancel_after and (running := sorted(pipeline.tokens.keys() - pipeline.done.keys())):
            pipeline.give(CancelRequest(chance.choice(running)))
            cancel_after += 6
    assert paused > 20
    assert "cancelled" in pipeline.done.values()
    for number, tokens in pipeline.tokens.items():
        if pipeline.done[number] == "cancelled":
            assert tokens == alone.tokens[number][: len(tokens)]
        else:
            assert tokens == alone.tokens[number]


class Clock:
    """In the place of ``time``: every look at it is later by a step's time, short or long."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._now = 0.0

    def perf_counter(self) -> float:
        self._now += self._chance.choice([0.0005, 0.001, 0.003, 0.01, 0.05])
        return self._now


def give_masks(pipeline: Pipeline, asked: dict[int, int], allowed: bytes) -> None:
    """Each masked request gets the mask of its next token once."""
    for number, count in asked.items():
        if number not in pipeline.done and count == len(pipeline.tokens[number]):
            pipeline.give(Mask(number, count, allowed))
            asked[number] = count + 1
