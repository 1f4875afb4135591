"""The token loop over real workers: requests come, go and are cancelled at random, and no token is wrong."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from mlx_lm.utils import load_model

from runtime.cluster.local_ranks import LocalRanks
from runtime.engine.frames import CancelRequest, Sampling, Submit
from tests.runtime.cluster.asking import HYBRID, SLIDING, Answers, ask, next_frame, plan
from tests.runtime.engine.models import CONFIGS, build, save
from tests.runtime.engine.pipeline import greedy

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.engine.orders import HopKind
    from runtime.planning.plan import Plan

pytestmark = pytest.mark.timeout(300)

SPLITS = [(3, 4), (1, 5, 1), (2, 1, 3, 1)]
DEMO_SPLITS = [(20, 10), (3, 9, 18), (1, 14, 4, 11)]
LONG_TOKENS = 200
PROMPT_LENGTHS = (20, 1, 2, 5, 9, 17, 40, 70, 3)
DEMO_WORDS = 49_000
"""Token ids below this are in the demo model's vocabulary."""


async def run_at_random(
    name: str, folder: Path, made: Plan, request_count: int, seed: int, hops: HopKind = "tls"
) -> None:
    """Submit and cancel at random moments, at most 8 at once; compare every answer with the whole model's."""
    chance = random.Random(seed)
    model = build(CONFIGS[name])
    wanted: dict[int, tuple[tuple[int, ...], int]] = {}
    answers = Answers()
    async with LocalRanks(made, folder, hops=hops) as ranks:
        while len(answers.ended) < request_count:
            open_requests = wanted.keys() - answers.ended.keys()
            may_submit = len(wanted) < request_count and len(open_requests) < 8
            if may_submit and (not open_requests or chance.random() < 0.7):
                request = len(wanted)
                prompt = tuple(chance.randrange(1, 128) for _ in range(chance.choice((1, 3, 8, 30, 90))))
                wanted[request] = prompt, chance.choice((1, 4, 15))
                answers.tokens[request] = []
                await ranks.send(Submit(request, *wanted[request], (), Sampling()))
                continue
            if open_requests and chance.random() < 0.03:
                await ranks.send(CancelRequest(chance.choice(sorted(open_requests))))
            answers.take(await next_frame(ranks))
    for request, (prompt, count) in wanted.items():
        tokens = answers.tokens[request]
        assert len(tokens) == count or answers.ended[request] == "cancelled"
        assert tokens == greedy(model, prompt, len(tokens))


def prompts_below(vocabulary: int) -> list[tuple[int, ...]]:
    chance = random.Random(7)
    return [tuple(chance.randrange(1, vocabulary) for _ in range(length)) for length in PROMPT_LENGTHS]


def of_the_whole(model: Any, prompts: list[tuple[int, ...]], token_count: int) -> list[list[int]]:
    return [greedy(model, prompt, token_count) for prompt in prompts]


async def one_and_eight(
    folder: Path, made: Plan, prompts: list[tuple[int, ...]], expected: list[list[int]], token_count: int
) -> None:
    """One request alone, then eight at once of different lengths: each gets what the whole model says."""
    submits = [Submit(request, prompt, token_count, (), Sampling()) for request, prompt in enumerate(prompts)]
    async with LocalRanks(made, folder) as ranks:
        tokens = (await ask(ranks, submits[0])).tokens | (await ask(ranks, *submits[1:])).tokens
    for request, prompt in enumerate(prompts):
        assert tokens[request] == expected[request], f"prompt of {len(prompt)} tokens"


async def tiny_one_and_eight(name: str, folder: Path, split: tuple[int, ...]) -> None:
    prompts = prompts_below(128)
    expected = of_the_whole(build(CONFIGS[name]), prompts, LONG_TOKENS)
    await one_and_eight(save(name, folder), plan(split), prompts, expected, LONG_TOKENS)


@pytest.fixture(scope="module")
def long_answers(demo_model) -> list[list[int]]:
    """What the whole demo model says: five minutes of computing, once for every split."""
    return of_the_whole(load_model(demo_model)[0], prompts_below(DEMO_WORDS), LONG_TOKENS)


@pytest.mark.parametrize(
    ("name", "split"), [pytest.param("qwen3", (2, 5), marks=pytest.mark.matrix), (HYBRID, (3, 1, 3))]
)
async def test_requests_that_come_and_go_get_their_own_tokens(tmp_path, name, split):
    await run_at_random(name, save(name, tmp_path), plan(split), request_count=40, seed=1)


@pytest.mark.parametrize(
    ("name", "split"), [("qwen3", (2, 5)), pytest.param(HYBRID, (3, 1, 3), marks=pytest.mark.matrix)]
)
async def test_hidden_states_over_mlx(tmp_path, name, split):
    await run_at_random(name, save(name, tmp_path), plan(split), request_count=20, seed=3, hops="mlx")


@pytest.mark.matrix
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("split", [(7,), *SPLITS], ids=str)
async def test_five_hundred_requests(tmp_path, name, split):
    await run_at_random(name, save(name, tmp_path), plan(split), request_count=500, seed=2)


@pytest.mark.parametrize("split", [(7,), (3, 4)], ids=["tensor", "pipeline of groups"])
async def test_requests_that_come_and_go_over_groups_of_two_ranks(tmp_path, split):
    """The first rank of each stage passes on what its group computed."""
    await run_at_random("qwen3", save("qwen3", tmp_path), plan(split, ranks_in_stage=2), request_count=24, seed=3)


@pytest.mark.matrix
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["qwen3", "llama, untied", "qwen3-moe"])
@pytest.mark.parametrize("split", [(7,), (3, 4)], ids=["tensor", "pipeline of groups"])
async def test_five_hundred_requests_over_groups_of_two_ranks(tmp_path, name, split):
    await run_at_random(name, save(name, tmp_path), plan(split, ranks_in_stage=2), request_count=500, seed=4)


@pytest.mark.matrix
async def test_two_hundred_tokens_of_one_and_of_eight_at_once(tmp_path):
    await tiny_one_and_eight(SLIDING, tmp_path, SPLITS[2])


@pytest.mark.matrix
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("split", SPLITS, ids=str)
async def test_two_hundred_tokens_on_every_kind_of_layer(tmp_path, name, split):
    await tiny_one_and_eight(name, tmp_path, split)


@pytest.mark.matrix
async def test_the_demo_model_answers_one_and_eight_at_once(demo_model):
    prompts = prompts_below(DEMO_WORDS)
    expected = of_the_whole(load_model(demo_model)[0], prompts, 5)
    await one_and_eight(demo_model, plan(DEMO_SPLITS[1]), prompts, expected, 5)


@pytest.mark.matrix
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("split", DEMO_SPLITS, ids=str)
async def test_two_hundred_tokens_of_the_demo_model(demo_model, long_answers, split):
    await one_and_eight(demo_model, plan(split), prompts_below(DEMO_WORDS), long_answers, LONG_TOKENS)
