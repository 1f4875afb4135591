"""Five ways in which mlx-lm's distributed server gives wrong text or hangs: here right text, or an error in words.

Found by running ``mlx_lm.server`` 0.32.2 over two and three ranks. Common to all: a rank decides something by itself.
"""

from __future__ import annotations

import random

import mlx.core as mx
import psutil
import pytest

from runtime.cluster.local_ranks import LocalRanks
from runtime.engine.frames import CancelRequest, Sampling, Submit
from runtime.engine.orders import CacheLimits
from runtime.errors import PomonaError
from tests.runtime.cluster.asking import HYBRID, SLIDING, Answers, ask, next_frame, plan
from tests.runtime.engine.models import CONFIGS, build, save
from tests.runtime.engine.pipeline import Pipeline, greedy

pytestmark = pytest.mark.timeout(300)

SEEDED = Sampling(temperature=1.0, seed=11)
ROOM, LITTLE = CacheLimits(4000, prefix_tokens=4000), CacheLimits(200, prefix_tokens=120)
PROMPT = tuple(range(3, 30))


def question(seed: int, shared_tokens: int) -> tuple[int, ...]:
    """Prompts of one length of shared beginning begin alike."""
    shared = random.Random(shared_tokens)
    own = random.Random(f"{seed} {shared_tokens}")
    beginning = [shared.randrange(1, 128) for _ in range(shared_tokens)]
    return (*beginning, *(own.randrange(1, 128) for _ in range(own.randrange(5, 25))))


async def test_a_client_leaves_a_seeded_request(tmp_path):
    """There: an exception on one rank alone, and wrong answers from then on."""
    alone = Pipeline(lambda: build(CONFIGS["qwen3"]), (7,))
    alone.submit(1, PROMPT, 20, sampling=SEEDED)
    alone.finish()
    async with LocalRanks(plan((3, 4)), save("qwen3", tmp_path)) as ranks:
        await ranks.send(Submit(0, PROMPT, 1000, (), SEEDED))
        left = Answers()
        left.tokens[0] = []
        while len(left.tokens[0]) < 3:
            left.take(await next_frame(ranks))
        await ranks.send(CancelRequest(0))
        while not left.ended:
            left.take(await next_frame(ranks))
        later = await ask(ranks, Submit(1, PROMPT, 20, (), SEEDED), Submit(2, PROMPT[5:], 20, (), Sampling()))
    assert left.ended == {0: "cancelled"}
    assert left.tokens[0][:20] == alone.tokens[1][: len(left.tokens[0])]
    assert later.tokens[1] == alone.tokens[1]
    assert later.tokens[2] == greedy(build(CONFIGS["qwen3"]), PROMPT[5:], 20)


@pytest.mark.parametrize(
    "failing", [0, pytest.param(1, marks=pytest.mark.matrix), pytest.param(2, marks=pytest.mark.matrix)]
)
async def test_one_rank_cannot_load(tmp_path, failing):
    """There: text of noise with status 200, and a gigabyte read as a message."""
    folder = save("qwen3", tmp_path)
    weights: dict[str, mx.array] = dict(mx.load(str(folder / "model.safetensors")))  # type: ignore[arg-type]  # a dict
    first_layer = (0, 2, 5)[failing]
    del weights[f"model.layers.{first_layer}.mlp.down_proj.weight"]
    mx.save_safetensors(str(folder / "model.safetensors"), weights)
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(PomonaError, match=rf"Rank {failing}: .*layers.{first_layer}.mlp.down_proj"):
        async with LocalRanks(plan((2, 3, 2)), folder):
            pass
    assert set(psutil.Process().children(recursive=True)) <= before


@pytest.mark.parametrize(
    ("name", "split", "limits"),
    [
        pytest.param(HYBRID, (3, 1, 3), ROOM, id="hybrid, a stage of full attention"),
        pytest.param(SLIDING, (2, 1, 4), ROOM, id="sliding, a stage of full attention"),
        pytest.param("qwen3", (1, 5, 1), LITTLE, id="cache limits, unequal stages", marks=pytest.mark.matrix),
        pytest.param(HYBRID, (1, 5, 1), LITTLE, id="cache limits, unequal hybrid stages", marks=pytest.mark.matrix),
    ],
)
async def test_shared_prefixes_asked_twice(tmp_path, name, split, limits):
    """There: stages reuse, cut and evict each by themselves, and hang or write noise from the second request on."""
    model = build(CONFIGS[name])
    prompts = [question(seed, shared_tokens) for seed in range(2) for shared_tokens in (90, 70)]
    async with LocalRanks(plan(split), save(name, tmp_path), limits) as ranks:
        for turn in range(2):
            for number, prompt in enumerate(prompts):
                request = 10 * turn + number
                answers = await ask(ranks, Submit(request, prompt, 8, (), Sampling()))
                assert answers.tokens[request] == greedy(model, prompt, 8)
            at_once = [Submit(100 * (turn + 1) + n, prompt, 8, (), Sampling()) for n, prompt in enumerate(prompts)]
            answers = await ask(ranks, *at_once)
            assert all(answers.tokens[one.request] == greedy(model, one.prompt, 8) for one in at_once)
            if limits is ROOM and turn:
                # Few sequences of a hybrid model are kept, and which ones depends on how four at once take turns.
                # One that has nothing left to prefill is not reported.
                assert any(answers.cached.get(one.request, 70) >= 70 for one in at_once)
        await ask(ranks, Submit(998, prompts[0], 8, (), Sampling()))
        answers = await ask(ranks, Submit(999, prompts[0], 8, (), Sampling()))
        if limits is ROOM:  # asked again at once, whatever else was kept
            assert answers.cached.get(999, len(prompts[0])) >= len(prompts[0]) - 1
