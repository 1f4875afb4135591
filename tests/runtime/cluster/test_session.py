"""A real model over real workers: the right tokens, the right bytes, and an end that leaves nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import psutil
import pytest

from runtime.cluster.messages import Cancel, Chat, ChatMessage, Ended, Failed, Finished, Rejected, Text
from tests.running import all_gone, controllers, find, session, workers

pytestmark = pytest.mark.timeout(300)

PROMPT = "Name three fruits that grow on trees, and say what each tastes like."
TOKENS = 24
TENSOR_TOKENS = 10

REFERENCE = """
import json, sys
import mlx.core as mx
from mlx_lm import load, stream_generate
model, tokenizer = load(sys.argv[1])
prompt = tokenizer.apply_chat_template([{"role": "user", "content": sys.argv[2]}], add_generation_prompt=True)
answers = stream_generate(model, tokenizer, prompt, max_tokens=int(sys.argv[3]))
print(json.dumps([answer.token for answer in answers if answer.token not in tokenizer.eos_token_ids]))
"""


@pytest.fixture(scope="module")
def reference_tokens(demo_model) -> list[int]:
    """What mlx_lm.generate says, greedily, with the whole model in one process."""
    command = [sys.executable, "-c", REFERENCE, str(demo_model), PROMPT, str(TOKENS)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment)
    tokens: list[int] = json.loads(done.stdout)
    return tokens


@pytest.mark.parametrize(
    "split",
    [
        (5, 18, 7),
        pytest.param((28, 1, 1), marks=pytest.mark.matrix),
        pytest.param((10, 10, 10), marks=pytest.mark.matrix),
    ],
)
async def test_every_split_gives_the_tokens_of_the_whole_model(agents, demo_model, reference_tokens, split):
    async with session(agents, demo_model, split) as running:
        text, tokens, finished = await running.ask(PROMPT, max_tokens=TOKENS)
    assert tokens == reference_tokens
    assert finished.finish_reason == "length"
    assert finished.completion_tokens == TOKENS
    assert text.strip()


@pytest.mark.matrix
async def test_one_node_gives_the_tokens_of_the_whole_model(agents, demo_model, reference_tokens):
    async with session(agents, demo_model, (30,), node_count=1) as running:
        _text, tokens, _finished = await running.ask(PROMPT, max_tokens=TOKENS)
    assert tokens == reference_tokens


@pytest.mark.matrix
async def test_three_ranks_that_share_each_layer_give_the_tokens_of_the_whole_model(
    agents, demo_model, reference_tokens
):
    async with session(agents, demo_model, None, "tensor") as running:
        _text, tokens, _finished = await running.ask(PROMPT, max_tokens=TENSOR_TOKENS)
        for rank in running.ready.ranks:
            assert rank.held_bytes == pytest.approx(rank.planned_bytes, rel=0.05)
    assert tokens == reference_tokens[:TENSOR_TOKENS]


async def test_each_rank_holds_its_own_layers_and_no_more_and_gives_them_back(agents, demo_model):
    async with session(agents, demo_model, (5, 18, 7)) as running:
        ranks = running.ready.ranks
        await running.ask(PROMPT, max_tokens=4)
        nodes = await find(agents)
        sizes = {worker.ppid(): worker.memory_full_info() for worker in workers(agents)}
        end = await running.client.stop()
    for node, rank, agent in zip(nodes, ranks, agents.started, strict=True):
        parts, size = node.resources.memory, sizes[agent.pid]
        assert parts is not None
        assert parts.weight_bytes == rank.held_bytes
        assert parts.kv_bytes > 0
        assert size.uss / 2 < parts.ours_bytes < size.rss
    assert isinstance(end, Ended)
    assert {back.node_name for back in end.memory} == {rank.node_name for rank in ranks}
    assert all(back.memory.held_bytes > back.memory.missing_bytes == 0 for back in end.memory)
    assert [(rank.first_layer, rank.last_layer) for rank in ranks] == [(0, 4), (5, 22), (23, 29)]
    for rank in ranks:
        assert rank.held_bytes == pytest.approx(rank.planned_bytes, rel=0.01)


@pytest.mark.matrix
async def test_answers_at_once_are_not_mixed_and_a_cancelled_one_ends(agents, demo_model):
    async with session(agents, demo_model, (10, 12, 8)) as running:
        alone, _, _ = await running.ask("Count from one to five.", "alone", max_tokens=12)
        questions = {"first": "Count from one to five.", "second": "Write a long story about a fox."}
        for request_id, prompt in questions.items():
            await running.client.send(Chat(request_id, (ChatMessage("user", prompt),), 12))
        await running.client.send(Chat("endless", (ChatMessage("user", "Write a very long story."),), 2000))
        texts = {"first": "", "second": "", "endless": ""}
        ended: dict[str, Finished] = {}
        while len(ended) < 3:
            event: Text | Finished = await running.next_of(Text, Finished)
            if isinstance(event, Finished):
                ended[event.request_id] = event
                continue
            if event.request_id == "endless" and not texts["endless"]:
                await running.client.send(Cancel("endless"))
            texts[event.request_id] += event.text
    assert texts["first"] == alone
    assert texts["second"] != alone
    assert ended["endless"].finish_reason == "cancelled"
    assert ended["endless"].completion_tokens < 100


@pytest.mark.matrix
async def test_a_seed_repeats_a_random_answer(agents, demo_model):
    async with session(agents, demo_model, (15, 15, 0)) as running:
        assert len(running.ready.ranks) == 2  # a node without layers is left out
        options = {"temperature": 1.5, "top_p": 0.9, "max_tokens": 12}
        texts = [(await running.ask(PROMPT, f"seed {seed}", seed=seed, **options))[0] for seed in (7, 7, 8)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.matrix
async def test_a_chat_that_is_too_long_is_refused_in_words_and_the_session_goes_on(agents, demo_model):
    async with session(agents, demo_model, (30, 0, 0)) as running:
        await running.client.send(Chat("long", (ChatMessage("user", "word " * 9000),)))
        rejected = await running.next_of(Rejected)
        assert "8192" in rejected.reason
        _text, _tokens, finished = await running.ask("Say hello.", max_tokens=3)
        assert finished.completion_tokens > 0


async def test_a_killed_worker_is_named_and_the_others_end(own_agents, demo_model):
    async with session(own_agents, demo_model, (10, 10, 10)) as running:
        await running.client.send(Chat("story", (ChatMessage("user", "Write a very long story."),), 2000))
        await running.next_of(Text)
        processes = workers(own_agents)
        middle = next(process for process in processes if process.cmdline()[-1] == "1")
        middle.kill()
        failed = await running.next_of(Failed)
        assert running.ready.ranks[1].node_name in failed.reason
        assert "SIGKILL" in failed.reason
        assert failed.node_id == running.ready.ranks[1].node_id
        await all_gone(processes)


async def test_a_killed_agent_is_named_and_leaves_no_worker(own_agents, demo_model):
    async with session(own_agents, demo_model, (10, 10, 10)) as running:
        processes = workers(own_agents)
        assert len(processes) == 3
        psutil.Process(own_agents.started[2].pid).kill()
        failed = await running.next_of(Failed)
        assert running.ready.ranks[2].node_name in failed.reason
        await all_gone(processes)


async def test_a_killed_controller_leaves_no_worker(own_agents, demo_model):
    async with session(own_agents, demo_model, (10, 10, 10)) as running:
        processes = workers(own_agents)
        (controller,) = controllers()
        controller.kill()
        failed = await running.next_of(Failed)
        assert "controller" in failed.reason
        await all_gone(processes)


@pytest.mark.matrix
async def test_a_tensor_group_whose_rank_is_killed_ends_everywhere(own_agents, demo_model):
    async with session(own_agents, demo_model, None, "tensor") as running:
        await running.client.send(Chat("story", (ChatMessage("user", "Write a very long story."),), 2000))
        await running.next_of(Text)
        processes = workers(own_agents)
        processes[-1].kill()
        failed = await running.next_of(Failed)
        assert "SIGKILL" in failed.reason
        await all_gone(processes)


@pytest.mark.matrix
async def test_agents_that_end_take_their_workers_along(own_agents, demo_model):
    async with session(own_agents, demo_model, (10, 10, 10)) as running:
        processes = workers(own_agents)
        for agent in own_agents.started:
            psutil.Process(agent.pid).terminate()
        await running.next_of(Failed)
        await all_gone(processes)
