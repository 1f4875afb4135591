"""A node that says nothing for four seconds has left its job, and why is told by what its kernel still takes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aiohttp
import pytest

from discovery.home import temporary_home
from resources.node import NodeResources, Versions
from runtime.agent.client import JobClient
from runtime.agent.messages import AgentMessage, JobEnded, StillHere
from runtime.cluster.jobs import SILENT_SECONDS, Jobs
from runtime.cluster.nodes import KnownNode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

VERSIONS = Versions("1", "1", "1", "1", "1")


@dataclass
class Agent:
    """The controller's end of a job, as far as it is asked here."""

    arrives: bool = True
    knocks: int = 0
    words: asyncio.Queue[AgentMessage | None] = field(default_factory=asyncio.Queue)

    async def messages(self) -> AsyncIterator[AgentMessage]:
        while (word := await self.words.get()) is not None:
            yield word

    async def knock(self) -> None:
        self.knocks += 1

    async def end(self) -> None:
        await self.words.put(JobEnded())

    async def close(self) -> None:
        await self.words.put(None)


class Job:
    """A job on Studio, and who was told to be gone."""

    def __init__(self, jobs: Jobs, agent: Agent, gone: list[str]) -> None:
        self.jobs = jobs
        self.agent = agent
        self.gone = gone
        self._now = 100.0

    async def go_on(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self._now += 0.1
            self.jobs.look(self._now)
            await asyncio.sleep(0)

    def sleep(self, seconds: float) -> None:
        self._now += seconds


@pytest.fixture
async def job(monkeypatch):
    agent, gone = Agent(), []

    async def opened(*_: object) -> Agent:
        return agent

    monkeypatch.setattr(JobClient, "open", opened)
    with temporary_home() as home:
        async with aiohttp.ClientSession() as http:
            jobs = Jobs(http, home, lambda *_: None, lambda node, reason: gone.append(reason))
            resources = NodeResources("a" * 64, "Studio", "M4", 1, 1, virtual=False, versions=VERSIONS)
            await jobs.open([KnownNode("127.0.0.1", 5, resources, home.identity.certificate_pem)])
            await asyncio.sleep(0)
            yield Job(jobs, agent, gone)
            await jobs.close()


async def test_one_that_makes_signs_stays(job):
    for _ in range(20):
        await job.go_on(1.0)
        await job.agent.words.put(StillHere())
        await asyncio.sleep(0)
    assert job.gone == []
    assert job.agent.knocks == 0


@pytest.mark.parametrize(
    ("arrives", "words"), [(True, "Pomona on Studio has stopped"), (False, "Studio is out of reach")]
)
async def test_one_that_does_not_is_gone_once_and_the_cause_is_named(job, arrives, words):
    job.agent.arrives = arrives
    await job.go_on(SILENT_SECONDS + 0.5)
    assert job.agent.knocks == 1
    (reason,) = job.gone
    assert words in reason
    await job.agent.words.put(None)
    await job.go_on(SILENT_SECONDS + 0.5)
    assert len(job.gone) == 1
    assert await job.jobs.end() == []  # nobody waits for it


async def test_a_controller_that_slept_blames_nobody(job):
    await job.go_on(2.0)
    job.sleep(3600.0)
    await job.go_on(0.1)
    await job.agent.words.put(StillHere())
    await job.go_on(1.0)
    assert job.gone == []


async def test_an_agent_that_closes_is_gone_at_once(job):
    await job.agent.words.put(None)
    await job.go_on(0.2)
    (reason,) = job.gone
    assert reason.startswith("Studio is gone")
