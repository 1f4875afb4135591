"""Faults in a row, drawn by a seed, while requests run: each ends as it would have, and nothing grows.

``FAULTS`` in the environment says how many (200), ``FAULTS_SEED`` another row.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest

from runtime.cluster.messages import (
    Cancel,
    Chat,
    ChatMessage,
    Failed,
    Finished,
    Ready,
    Recovering,
    Rejected,
    Resplit,
    Text,
)
from tests.faults.harm import HARMS, SPLITS
from tests.running import controllers, find, plan_for, session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import psutil

    from tests.faults.fleet import Fleet
    from tests.running import Running

COUNT = int(os.environ.get("FAULTS", "200"))
SEED = int(os.environ.get("FAULTS_SEED", "1"))
WARM = 10
"""Memory is compared from this fault on: before, what is kept for good is still being made."""
GROWTH = 1.10
TOKENS = 12
QUESTIONS = ("Write a story about a fox.", "Count from one to ten.", "Name three fruits.")
QUIET_SECONDS = 90.0
IN_WORKERS = [name for name, harm in HARMS.items() if harm.after_tokens]
"""The others need a prompt that was not computed before; these ask the same again and again."""
KINDS = [*IN_WORKERS, *IN_WORKERS, "agent SIGKILL", "agent SIGSTOP", "cancel", "resplit"]

pytestmark = [pytest.mark.timeout(60 + 40 * COUNT), pytest.mark.matrix]


class Row:
    """A session, the requests that run on it, and what each answer is when nothing goes wrong."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.undisturbed: dict[str, list[int]] = {}
        self.ends: Counter[str] = Counter()
        self._number = 0

    async def learn(self) -> None:
        for question in QUESTIONS:
            _text, self.undisturbed[question], _ = await self.running.ask(question, question, max_tokens=TOKENS)

    async def ask_and(
        self,
        questions: Sequence[str],
        harm: Callable[[], None] | None,
        after_tokens: int = 0,
        *,
        breaks: bool,
        cancel: bool = False,
    ) -> None:
        """Ask at once, do ``harm``, and wait for every end; if it ``breaks`` the pipeline, for that being whole too."""
        asked = {}
        for question in questions:
            self._number += 1
            asked[f"{self._number}"] = question
        tokens: dict[str, list[int]] = {request: [] for request in asked}
        if after_tokens == 0 and harm is not None:
            harm()
            harm = None
        for request, question in asked.items():
            await self.running.client.send(Chat(request, (ChatMessage("user", question),), TOKENS))
        left = set(asked)
        broken = breaks
        async with asyncio.timeout(QUIET_SECONDS):
            while left or broken:
                event = await self.running.next_of(Text, Finished, Rejected, Recovering, Ready, Failed)
                match event:
                    case Text():
                        tokens[event.request_id] += event.token_ids
                        if sum(map(len, tokens.values())) >= after_tokens and harm is not None:
                            harm()
                            harm = None
                            if cancel:
                                await self.running.client.send(Cancel(event.request_id))
                    case Finished():
                        left.discard(event.request_id)
                        self.ends[event.finish_reason] += 1
                        whole = self.undisturbed[asked[event.request_id]]
                        given = tokens[event.request_id]
                        assert given == whole[: len(given)]
                        assert event.finish_reason == "cancelled" or given == whole
                    case Rejected():
                        left.discard(event.request_id)
                        self.ends["rejected"] += 1
                    case Ready():
                        self.running.ready = event
                        broken = False
                    case Recovering() if breaks:
                        pass  # until it is ready again
                    case _:
                        raise AssertionError(event)


def resident_bytes(processes: Sequence[psutil.Process]) -> list[int]:
    return [process.memory_info().rss for process in processes]


async def test_faults_in_a_row(running_fleet, demo_model, note):
    fleet, draw = running_fleet, random.Random(SEED)
    fleet.wish("recoveries", "1000000")
    done: Counter[str] = Counter()
    before: list[int] = []
    async with session(fleet.agents, demo_model, SPLITS["pipeline"], keep_running=True) as running:
        row = Row(running)
        await row.learn()
        # The third agent is the one that is killed, so its memory begins anew.
        staying = [*(fleet.agent(agent.node_id) for agent in fleet.agents.started[:2]), *controllers()]
        for number in range(COUNT):
            if number == min(WARM, COUNT // 2):
                before = resident_bytes(staying)
            fault = draw.choice(KINDS)
            done[fault] += 1
            questions = draw.sample(QUESTIONS, draw.randint(1, 3))
            after_tokens = draw.randint(1, 8)
            victim = draw.choice(running.ready.ranks).node_id
            if fault in IN_WORKERS:
                harm = partial(HARMS[fault].do, fleet, victim)
                await row.ask_and(questions, harm, after_tokens, breaks=True)
            elif fault.startswith("agent"):
                node_id = fleet.agents.started[2].node_id
                agent = fleet.agent(node_id)
                harm = partial(agent.send_signal, signal.Signals[fault.split()[1]])
                await row.ask_and(questions, harm, after_tokens, breaks=True)
                agent.kill()
                fleet.replace(node_id)
                await resplit(row, fleet, demo_model, SPLITS["pipeline"])
            elif fault == "cancel":
                await row.ask_and(questions, lambda: None, after_tokens, breaks=False, cancel=True)
            else:
                first = draw.randint(1, 28)
                second = draw.randint(1, 29 - first)
                await resplit(row, fleet, demo_model, (first, second, 30 - first - second))
        fleet.forget_wishes()
        after = resident_bytes(staying)
    grown = [f"{now / then - 1:+.1%}" for then, now in zip(before, after, strict=True)]
    words = f"{dict(done)}; requests: {dict(row.ends)}; memory of two agents and the controller: {', '.join(grown)}"
    note(f"{COUNT} random faults", f"seed {SEED}", "goes on", None, words)
    assert all(now < then * GROWTH for then, now in zip(before, after, strict=True)), grown


async def resplit(row: Row, fleet: Fleet, folder: Path, split: tuple[int, ...] | None) -> None:
    """Go over to a split while a request runs."""
    nodes = await find(fleet.agents)
    await row.running.client.send(Resplit(plan_for(folder, nodes, split), tuple(nodes)))
    await row.ask_and(QUESTIONS[:1], None, breaks=True)
