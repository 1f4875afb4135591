"""A session that loses a rank or a node goes on: the answer stops for a moment and ends as it would have."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import psutil
import pytest

from runtime.cluster.messages import Chat, ChatMessage, Failed, Finished, Ready, Recovering, Text
from runtime.cluster.recovery import RECOVERIES, RECOVERY_SECONDS, Recoveries
from tests.running import session, workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.running import Running

pytestmark = pytest.mark.timeout(300)

QUESTION = "Write a story about a fox."
TOKENS = 12


def rank_process(agents, number: int) -> psutil.Process:
    """The worker with this number in its job."""
    return next(process for process in workers(agents) if process.cmdline()[-1] == str(number))


async def answer(running: Running, harm: Callable[[], None] | None = None) -> tuple[list[int], list[Recovering]]:
    """The answer's tokens; after the third of them ``harm`` is done."""
    await running.client.send(Chat("story", (ChatMessage("user", QUESTION),), max_tokens=TOKENS))
    tokens: list[int] = []
    troubles: list[Recovering] = []
    used_tokens = 0
    while True:
        event = await running.next_of(Text, Finished, Recovering, Ready, Failed)
        match event:
            case Text():
                tokens += event.token_ids
                used_tokens = event.context_tokens
                if harm is not None and len(tokens) > 2:
                    harm()
                    harm = None
            case Recovering():
                troubles.append(event)
            case Ready():
                running.ready = event
            case Finished():
                assert used_tokens == event.prompt_tokens + event.completion_tokens
                return tokens, troubles
            case _:
                raise AssertionError(event)


@pytest.mark.parametrize(
    ("lost", "number"),
    [
        pytest.param(0, signal.SIGKILL, id="killed driver", marks=pytest.mark.matrix),
        pytest.param(1, signal.SIGKILL, id="killed middle", marks=pytest.mark.matrix),
        pytest.param(2, signal.SIGKILL, id="killed last", marks=pytest.mark.matrix),
        pytest.param(0, signal.SIGSTOP, id="stopped driver", marks=pytest.mark.matrix),
        pytest.param(1, signal.SIGSTOP, id="stopped middle", marks=pytest.mark.matrix),
        pytest.param(2, signal.SIGSTOP, id="stopped last", marks=pytest.mark.matrix),
    ],
)
async def test_an_answer_survives_the_loss_of_any_worker(own_agents, demo_model, lost, number):
    async with session(own_agents, demo_model, (10, 10, 10), keep_running=True) as running:
        undisturbed, _ = await answer(running)
        name = running.ready.ranks[lost].node_name
        victim = rank_process(own_agents, lost)
        tokens, troubles = await answer(running, lambda: victim.send_signal(number))
        assert tokens == undisturbed
        (trouble,) = troubles
        assert name in trouble.reason
        assert number.name in trouble.reason
        # Its neighbours kept their layers.
        read = [rank.read_bytes for rank in running.ready.ranks]
        assert [held > 0 for held in read] == [rank == lost for rank in range(3)]
        assert len(workers(own_agents)) == 3


@pytest.mark.parametrize(
    "lost",
    [pytest.param(0, id="driver", marks=pytest.mark.matrix), pytest.param(2, id="last", marks=pytest.mark.matrix)],
)
async def test_an_answer_survives_the_loss_of_a_node(own_agents, demo_model, lost):
    async with session(own_agents, demo_model, (10, 10, 10), keep_running=True) as running:
        undisturbed, _ = await answer(running)
        gone = running.ready.ranks[lost]
        tokens, troubles = await answer(running, psutil.Process(own_agents.started[lost].pid).kill)
        assert tokens == undisturbed
        assert gone.node_name in troubles[0].reason
        left = [rank.node_id for rank in running.ready.ranks]
        assert gone.node_id not in left
        assert sum(rank.last_layer - rank.first_layer + 1 for rank in running.ready.ranks) == 30


@pytest.mark.matrix
async def test_a_tensor_group_is_started_anew(own_agents, demo_model):
    async with session(own_agents, demo_model, None, "tensor", keep_running=True) as running:
        undisturbed, _ = await answer(running)
        tokens, troubles = await answer(running, rank_process(own_agents, 1).kill)
        assert tokens == undisturbed
        assert troubles
        assert len(workers(own_agents)) == 3


def test_what_breaks_too_often_is_not_mended():
    recoveries = Recoveries()
    assert [recoveries.take(second) for second in range(RECOVERIES + 1)] == [True] * RECOVERIES + [False]
    assert recoveries.take(RECOVERY_SECONDS + 0.5)
    assert not recoveries.take(RECOVERY_SECONDS + 0.6)
