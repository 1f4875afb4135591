"""Many clients at once for a while: nothing lost, nothing mixed up, no rank dies, and memory stays."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from typing import Any

import openai
import psutil
import pytest
from openai import AsyncOpenAI

from tests.runtime.server.serving import KEY, serving

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

CLIENTS = 32
SECONDS = float(os.environ.get("POMONA_SOAK_SECONDS", "300"))
FLAT = 1.25
"""Memory of all processes in the last quarter, over that of the second quarter."""
SUBJECTS = ("fox", "bear", "lake", "tower", "ship", "garden", "river", "king", "bridge", "forest")
ABSURD: tuple[dict[str, Any], ...] = (
    {"temperature": 99},
    {"max_tokens": -1},
    {"n": 1000},
    {"logit_bias": {"x": 1}},
    {"stop": [""]},
    {"extra_body": {"nonsense": [[[[]]]]}},
    {"messages": [{"role": "user", "content": "word " * 20_000}]},
)


def question(number: int) -> Any:
    subject = SUBJECTS[number % len(SUBJECTS)]
    return [{"role": "user", "content": f"Tell me about the {subject}. " + f"The {subject} waits. " * (number % 7 * 8)}]


def length(number: int) -> int:
    return 4 + number * 7 % 40


class Soak:
    def __init__(self, client: Any, model: str, expected: dict[int, str]) -> None:
        self.client = client
        self.model = model
        self.expected = expected
        self.answered = self.left = self.refused = 0

    async def ask(self, number: int, **options) -> str:
        answer = await self.client.chat.completions.create(
            **{
                "model": self.model,
                "messages": question(number),
                "temperature": 0,
                "max_tokens": length(number),
                **options,
            }
        )
        return str(answer.choices[0].message.content)

    async def be_a_client(self, seed: int, until: float) -> None:
        dice = random.Random(seed)
        while time.monotonic() < until:
            number, kind = dice.randrange(len(self.expected)), dice.random()
            if kind < 0.2:
                await self.leave(number, after=dice.randrange(1, 6))
            elif kind < 0.3:
                with pytest.raises(openai.BadRequestError):
                    await self.ask(number, **dice.choice(ABSURD))
                self.refused += 1
            else:
                assert await self.ask(number) == self.expected[number]
                self.answered += 1

    async def leave(self, number: int, after: int) -> None:
        stream = await self.client.chat.completions.create(
            model=self.model, messages=question(number), temperature=0, max_tokens=2000, stream=True
        )
        heard = 0
        async for _ in stream:
            heard += 1
            if heard > after:
                break
        await stream.close()
        self.left += 1


async def test_32_clients(speaking):
    with serving(speaking, "--virtual-nodes", "2", "--split", "13,17") as server:
        processes = server.workers()
        begun = {process.pid for process in processes}
        async with AsyncOpenAI(base_url=server.address, api_key=KEY, max_retries=0, timeout=600) as client:
            soak = Soak(client, server.model, {})
            for number in range(20):
                soak.expected[number] = await soak.ask(number)
            memory: list[int] = []
            until = time.monotonic() + SECONDS
            async with asyncio.TaskGroup() as group:
                for seed in range(CLIENTS):
                    group.create_task(soak.be_a_client(seed, until))
                while time.monotonic() < until:
                    await asyncio.sleep(1)
                    everyone = psutil.Process(server.process.pid).children(recursive=True)
                    memory.append(sum(process.memory_info().rss for process in everyone))
        server.wait_until_idle()
        assert {process.pid for process in server.workers()} == begun
        assert server.health()["status"] == "ok"
    quarter = len(memory) // 4
    growth = statistics.median(memory[-quarter:]) / statistics.median(memory[quarter : 2 * quarter])
    print(f"{soak.answered} answered, {soak.left} left, {soak.refused} refused, memory grew by {growth:.3f}")
    assert soak.answered
    assert soak.left
    assert soak.refused
    assert growth < FLAT


async def test_a_rank_that_dies_while_it_answers_costs_time_and_nothing_else(speaking):
    with serving(speaking, "--virtual-nodes", "3") as server:
        async with AsyncOpenAI(base_url=server.address, api_key=KEY, max_retries=0, timeout=300) as client:
            soak = Soak(client, server.model, {})
            alone = await soak.ask(3, max_tokens=60)
            stream = await soak.client.chat.completions.create(
                model=server.model, messages=question(3), temperature=0, max_tokens=60, stream=True
            )
            heard, killed = "", False
            async for chunk in stream:
                heard += chunk.choices[0].delta.content or ""
                if len(heard) > 20 and not killed:  # once: a session gives up at the fourth loss in ten minutes
                    server.workers()[1].kill()
                    killed = True
            assert killed
            assert heard == alone
