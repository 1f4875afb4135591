"""A split that changes while requests run: they go on, no token is wrong, and only moved layers are read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from runtime.cluster.local_ranks import LocalRanks
from runtime.cluster.messages import (
    Cancel,
    Chat,
    ChatMessage,
    Failed,
    Finished,
    PlanRefused,
    Ready,
    Rebalance,
    Resplit,
    RunMeasured,
    Text,
)
from runtime.engine.frames import Generated, Sampling, Submit
from runtime.models.layout import read_layout
from tests.running import find, plan_for, session, workers
from tests.runtime.cluster.asking import HYBRID, plan
from tests.runtime.engine.models import CONFIGS, build, save
from tests.runtime.engine.pipeline import greedy

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.timeout(300)

PROMPTS = ((3, 1, 4, 1, 5, 9, 2, 6), (2, 7, 1), tuple(range(1, 41)), (5,))
TOKENS = 24


async def generate(ranks: LocalRanks, got: dict[int, list[int]], until: int) -> None:
    """Submit what is left of every prompt, and take tokens until each has ``until``."""
    for request, prompt in enumerate(PROMPTS):
        tokens = got.setdefault(request, [])
        if len(tokens) < TOKENS:
            await ranks.send(Submit(request, (*prompt, *tokens), TOKENS - len(tokens), (), Sampling()))
    async with asyncio.timeout(60):
        while min(map(len, got.values())) < until:
            frame = await ranks.next_frame()
            if isinstance(frame, Generated):
                for request, token in zip(frame.requests, frame.tokens, strict=True):
                    got[request].append(token)


@pytest.mark.parametrize("name", ["llama, tied", HYBRID])
async def test_workers_stay_and_read_only_the_layers_that_moved(tmp_path, name):
    """Over two, three and one stages: a worker keeps what it has, new ones come, others leave."""
    folder = save(name, tmp_path)
    layout = read_layout(folder)
    got: dict[int, list[int]] = {}
    async with LocalRanks(plan((3, 4)), folder) as ranks:
        before = list(ranks.pids)
        await generate(ranks, got, until=4)
        await ranks.rebuild(plan((2, 5)))
        take_rest(ranks, got)
        assert ranks.pids == before
        first, last = ranks.ranks
        assert first.read_bytes == 0
        assert last.read_bytes == layout.layer_bytes[2]
        assert first.held_bytes < layout.layer_bytes[0] * 3 + layout.embedding_bytes
        await generate(ranks, got, until=9)

        await ranks.rebuild(plan((2, 3, 2)))
        take_rest(ranks, got)
        assert ranks.pids[:2] == before
        await generate(ranks, got, until=14)

        await ranks.rebuild(plan((7,)))
        take_rest(ranks, got)
        assert ranks.pids == before[:1]
        await generate(ranks, got, until=TOKENS)
    model = build(CONFIGS[name])
    for request, prompt in enumerate(PROMPTS):
        assert got[request] == greedy(model, prompt, TOKENS)


def take_rest(ranks: LocalRanks, got: dict[int, list[int]]) -> None:
    """What the old pipeline had still said, which is true all the same."""
    while not ranks.frames.empty():
        frame = ranks.frames.get_nowait()
        if isinstance(frame, Generated):
            for request, token in zip(frame.requests, frame.tokens, strict=True):
                got[request].append(token)


async def _answers(running, questions: Sequence[str], change=None) -> dict[str, list[int]]:
    """Ask all at once; after the first tokens of each, ``change`` once."""
    tokens: dict[str, list[int]] = {question: [] for question in questions}
    for question in questions:
        await running.client.send(Chat(question, (ChatMessage("user", question),), max_tokens=8))
    open_questions = set(questions)
    while open_questions:
        event = await running.next_of(Text, Finished, Failed, Ready, PlanRefused)
        assert not isinstance(event, Failed | PlanRefused), event
        if isinstance(event, Text):
            tokens[event.request_id] += event.token_ids
        elif isinstance(event, Finished):
            open_questions.remove(event.request_id)
        elif isinstance(event, Ready):
            running.ready = event
        if change is not None and min(map(len, tokens.values())) > 2:
            await running.client.send(change)
            change = None
    return tokens


@pytest.mark.matrix
async def test_chats_go_on_over_a_split_that_changes(agents, demo_model):
    questions = ["Name three fruits.", "What is a river?", "Why is the sky blue?", "Count to ten."]
    nodes = await find(agents)
    layout = read_layout(demo_model)
    async with session(agents, demo_model, (5, 18, 7)) as running:
        before = {process.pid for process in workers(agents)}
        undisturbed = await _answers(running, questions)
        changed = await _answers(running, questions, Resplit(plan_for(demo_model, nodes, (7, 16, 7))))
        assert changed == undisturbed
        assert {process.pid for process in workers(agents)} == before
        assert [rank.read_bytes for rank in running.ready.ranks] == [sum(layout.layer_bytes[5:7]), 0, 0]
        for rank in running.ready.ranks:
            assert rank.held_bytes == pytest.approx(rank.planned_bytes, rel=0.03)

        # One node less: its worker ends, the two others take over its layers.
        smaller = Resplit(plan_for(demo_model, nodes[:2], (13, 17)))
        assert await _answers(running, questions, smaller) == undisturbed
        assert len(workers(agents)) == 2

        await running.ask("Name three fruits.", "alone", max_tokens=8)
        measured = await _measured(running)
        assert [(stage.first_layer, stage.last_layer) for stage in measured.stages] == [(0, 12), (13, 29)]
        assert all(stage.predicted_seconds > 0 for stage in measured.stages)
        assert measured.words.startswith(("By what was measured, ", "Another split gains nothing"))


async def _measured(running) -> RunMeasured:
    """What the stages took; workers report it a moment after the answer."""
    async with asyncio.timeout(60):
        while True:
            await running.client.send(Rebalance())
            measured: RunMeasured = await running.next_of(RunMeasured)
            if len(measured.stages) == 2 and all(stage.measured_seconds for stage in measured.stages):
                return measured


@pytest.mark.matrix
async def test_an_answer_can_be_cancelled_and_begun_while_the_split_changes(agents, demo_model):
    nodes = await find(agents)
    async with session(agents, demo_model, (5, 18, 7)) as running:
        await running.client.send(Chat("long", (ChatMessage("user", "Tell a story."),), max_tokens=1000))
        await running.next_of(Text)
        await running.client.send(Resplit(plan_for(demo_model, nodes, (20, 5, 5))))
        await running.client.send(Chat("new", (ChatMessage("user", "Say hello."),), max_tokens=3))
        await running.client.send(Cancel("long"))
        ended: dict[str, str] = {}
        while len(ended) < 2:
            event = await running.next_of(Finished, Failed)
            assert isinstance(event, Finished), event
            ended[event.request_id] = event.finish_reason
        assert ended == {"long": "cancelled", "new": "length"}


@pytest.mark.matrix
async def test_a_plan_of_another_model_is_refused_and_nothing_changes(agents, demo_model, tmp_path):
    nodes = await find(agents)
    other = plan_for(save("llama, tied", tmp_path), nodes[:2], (3, 4))
    async with session(agents, demo_model, (5, 18, 7)) as running:
        await running.client.send(Resplit(other))
        refused = await running.next_of(PlanRefused, Failed)
        assert isinstance(refused, PlanRefused)
        assert "stop it to run" in refused.reason
        _text, tokens, _finished = await running.ask("Name three fruits.", max_tokens=3)
        assert len(tokens) == 3
