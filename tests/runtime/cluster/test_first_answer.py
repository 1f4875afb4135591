"""One dead address costs little when another one answers."""

from __future__ import annotations

import asyncio

import pytest

from discovery.address import HostPort
from runtime.agent.calls import NoAnswer
from runtime.cluster.first_answer import first_answer

GOOD, DEAD, SILENT = HostPort("10.0.0.1"), HostPort("10.0.0.2"), HostPort("10.0.0.3")


class Node:
    """Answers at one place, fails at another, and keeps silent at a third."""

    def __init__(self) -> None:
        self.asked: list[HostPort] = []
        self.given_up: list[HostPort] = []

    async def ask(self, place: HostPort) -> str:
        self.asked.append(place)
        if place == DEAD:
            raise NoAnswer("dead")
        if place == SILENT:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.given_up.append(place)
                raise
        return "here"

    async def first(self, *places: HostPort, alone: float = 60.0, following: float = 60.0) -> tuple[HostPort, str]:
        return await first_answer(places, self.ask, first_alone_seconds=alone, next_seconds=following)


async def test_the_first_place_is_asked_alone_while_it_answers():
    node = Node()
    assert await node.first(GOOD, SILENT, DEAD) == (GOOD, "here")
    assert node.asked == [GOOD]


async def test_a_place_that_fails_hands_on_at_once():
    node = Node()
    assert await node.first(DEAD, GOOD) == (GOOD, "here")


async def test_a_silent_place_is_overtaken_and_given_up():
    node = Node()
    async with asyncio.timeout(10):
        assert await node.first(SILENT, GOOD, alone=0.01) == (GOOD, "here")
    assert node.given_up == [SILENT]
    assert len(asyncio.all_tasks()) == 1


async def test_when_all_fail_it_is_the_first_that_counts():
    node = Node()
    with pytest.raises(NoAnswer, match="dead"):
        await node.first(DEAD, DEAD)
    with pytest.raises(NoAnswer, match="no address"):
        await node.first()


async def test_an_error_of_another_kind_is_not_hidden():
    async def broken(_place: HostPort) -> str:
        raise KeyError("a fault in the program")

    with pytest.raises(KeyError):
        await first_answer([GOOD, DEAD], broken, first_alone_seconds=1, next_seconds=1)


async def test_whoever_gives_up_leaves_no_question_behind():
    node = Node()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await node.first(SILENT, SILENT, alone=0.01, following=0.01)
    assert node.given_up == [SILENT, SILENT]
