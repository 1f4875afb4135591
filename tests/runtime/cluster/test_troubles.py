"""A late trouble is told if the loss that it may be about was not told in the meantime."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runtime.cluster import troubles
from runtime.cluster.messages import Failed
from runtime.cluster.troubles import Trouble, Troubles

SEEN = Trouble(Failed("a neighbour is gone", "a"), lost_worker=1)
HOP = Trouble(Failed("a hop broke", "a"))


class Crew:
    """Three workers in the first pipeline."""

    def __init__(self):
        self.epoch = 0
        self.is_leaving = False
        self.numbers = {0, 1, 2}

    def rank(self, number):
        return number if number in self.numbers else None

    def lose(self, number):
        self.numbers.discard(number)


@pytest.fixture
def crew(monkeypatch):
    monkeypatch.setattr(troubles, "GRACE_SECONDS", 0.0)
    return Crew()


async def told(crew: Any, trouble: Trouble, meanwhile=lambda: None) -> list[Trouble]:
    """What comes of a late trouble when ``meanwhile`` happens before its time is up."""
    heard: list[Trouble] = []
    Troubles(crew, heard.append).tell_late(trouble)
    meanwhile()
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(0.0, passed.set)
    await passed.wait()
    return heard


@pytest.mark.parametrize("trouble", [SEEN, HOP])
async def test_it_is_told_where_nothing_else_came(crew, trouble):
    assert await told(crew, trouble) == [trouble]


@pytest.mark.parametrize(("trouble", "left"), [(SEEN, {0, 2}), (HOP, {0, 1, 2})])
async def test_a_pipeline_that_is_left_already_only_does_without_the_worker(crew, trouble, left):
    def leave():
        crew.is_leaving = True

    assert await told(crew, trouble, leave) == []
    assert crew.numbers == left


@pytest.mark.parametrize(("members", "is_told"), [({0, 1}, True), ({0, 2}, False)])
async def test_in_a_newer_pipeline_it_counts_for_a_worker_that_was_to_stay(crew, members, is_told):
    def rebuild():
        crew.epoch, crew.numbers = 1, members

    assert bool(await told(crew, SEEN, rebuild)) == is_told
    assert await told(crew, HOP, rebuild) == [HOP]  # of the newest pipeline by now
