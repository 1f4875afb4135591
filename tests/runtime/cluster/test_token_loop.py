"""The token loop over real workers: requests come, go and are cancelled at random, and no token is wrong."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from runtime.cluster.local_ranks import LocalRanks
from runtime.engine.frames import CancelRequest, Done, Generated, Sampling, Submit
from runtime.planning.plan import Plan, RankPlan, StagePlan
from tests.runtime.engine.models import CONFIGS, build, save
from tests.runtime.engine.pipeline import greedy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.engine.orders import HopKind

pytestmark = pytest.mark.timeout(300)

HYBRID = "qwen3-next, linear and full attention"
LAYERS = 7


def plan(split: Sequence[int], ranks_in_stage: int = 1) -> Plan:
    """A plan for a tiny model; its stages are groups of ``ranks_in_stage`` ranks."""
    stages = []
    first = 0
    for stage, count in enumerate(split):
        ranks = tuple(RankPlan(f"{stage}.{rank}", f"{stage}.{rank}", 0) for rank in range(ranks_in_stage))
        stages.append(StagePlan(first, first + count - 1, ranks))
        first += count
    return Plan("tiny", "pipeline" if ranks_in_stage == 1 else "tensor", LAYERS, tuple(stages))


async def run_at_random(name: str, folder, made: Plan, request_count: int, seed: int, hops: HopKind = "tls") -> None:
    """Submit and cancel at random moments, at most 8 at once; compare every answer with the whole model's."""
    chance = random.Random(seed)
    model = build(CONFIGS[name])
    wanted: dict[int, tuple[tuple[int, ...], int]] = {}
    got: dict[int, list[int]] = {}
    ended: dict[int, str] = {}
    async with LocalRanks(made, folder, hops=hops) as ranks:
        while len(ended) < request_count:
            open_requests = wanted.keys() - ended.keys()
            if len(wanted) < request_count and len(open_requests) < 8 and chance.random() < 0.7:
                request = len(wanted)
                prompt = tuple(chance.randrange(1, 128) for _ in range(chance.choice((1, 3, 8, 30, 90))))
                wanted[request] = prompt, chance.choice((1, 4, 15))
                got[request] = []
                await ranks.send(Submit(request, *wanted[request], (), Sampling()))
                continue
            if open_requests and chance.random() < 0.03:
                await ranks.send(CancelRequest(chance.choice(sorted(open_requests))))
            async with asyncio.timeout(60):
                frame = await ranks.next_frame()
            if isinstance(frame, Generated):
                for request, token in zip(frame.requests, frame.tokens, strict=True):
                    got[request].append(token)
            elif isinstance(frame, Done):
                ended[frame.request] = frame.reason
    for request, (prompt, count) in wanted.items():
        tokens = got[request]
        assert len(tokens) == count or ended[request] == "cancelled"
        assert tokens == greedy(model, prompt, len(tokens))


@pytest.mark.parametrize(("name", "split"), [("qwen3", (2, 5)), (HYBRID, (3, 1, 3))])
async def test_requests_that_come_and_go_get_their_own_tokens(tmp_path, name, split):
    await run_at_random(name, save(name, tmp_path), plan(split), request_count=40, seed=1)


@pytest.mark.parametrize(("name", "split"), [("qwen3", (2, 5)), (HYBRID, (3, 1, 3))])
async def test_hidden_states_over_mlx(tmp_path, name, split):
    await run_at_random(name, save(name, tmp_path), plan(split), request_count=20, seed=3, hops="mlx")


@pytest.mark.matrix
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("split", [(7,), (3, 4), (1, 5, 1), (2, 1, 3, 1)], ids=str)
async def test_five_hundred_requests(tmp_path, name, split):
    await run_at_random(name, save(name, tmp_path), plan(split), request_count=500, seed=2)


async def test_two_stages_of_two_ranks_each(tmp_path):
    """Pipeline and tensor parallel together: the first rank of each stage passes on what its group computed."""
    folder = save("qwen3", tmp_path)
    prompt = (3, 1, 4, 1, 5, 9, 2, 6)
    tokens: list[int] = []
    async with LocalRanks(plan((3, 4), ranks_in_stage=2), folder) as ranks:
        await ranks.send(Submit(1, prompt, 6, (), Sampling()))
        while not isinstance(frame := await ranks.next_frame(), Done):
            if isinstance(frame, Generated):
                tokens += frame.tokens
    assert tokens == greedy(build(CONFIGS["qwen3"]), prompt, 6)
