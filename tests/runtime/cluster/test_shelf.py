"""When a node that says nothing is taken for gone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from discovery.address import HostPort
from runtime.cluster.shelf import Patience, Shelf


@dataclass(frozen=True)
class Node:
    host: str = "10.0.0.1"
    port: int = 47665


class Changes:
    """A shelf, what its kernel is said to know, and how often it changed."""

    def __init__(self, patience: Patience) -> None:
        self.acknowledged = False
        self.asked: list[tuple[str, int]] = []
        self.count = 0
        self._news = asyncio.Event()
        self.shelf: Shelf[Node] = Shelf(patience, self._ask, self._changed)

    def _ask(self, host: str, port: int) -> bool:
        self.asked.append((host, port))
        self._news.set()
        return self.acknowledged

    def _changed(self) -> None:
        self.count += 1
        self._news.set()

    async def until_gone(self) -> None:
        async with asyncio.timeout(10):
            while "a" in self.shelf:
                self._news.clear()
                await self._news.wait()

    async def until_asked(self, times: int) -> None:
        async with asyncio.timeout(10):
            while len(self.asked) < times:
                self._news.clear()
                await self._news.wait()


@pytest.fixture
async def changes():
    changes = Changes(Patience(silence=0.02, busy=60.0, look=0.01))
    changes.shelf.put("a", Node())
    yield changes
    changes.shelf.clear()


async def test_silence_that_its_kernel_does_not_explain_is_the_end(changes):
    await changes.until_gone()
    assert changes.asked == [("10.0.0.1", 47665)]
    assert changes.count == 2


async def test_while_its_kernel_acknowledges_a_node_is_busy_and_not_gone(changes):
    changes.acknowledged = True
    await changes.until_asked(5)
    assert changes.shelf.get("a") == Node()
    assert changes.count == 1
    changes.acknowledged = False
    await changes.until_gone()


async def test_nobody_may_be_busy_for_ever():
    changes = Changes(Patience(silence=0.02, busy=0.1, look=0.01))
    changes.acknowledged = True
    changes.shelf.put("a", Node())
    await changes.until_gone()
    assert len(changes.asked) >= 1


async def test_an_answer_begins_its_time_anew(changes):
    changes.acknowledged = True
    await changes.until_asked(2)
    changes.shelf.put("a", Node("10.0.0.2"))
    asked = len(changes.asked)
    await changes.until_asked(asked + 1)
    assert changes.asked[-1] == ("10.0.0.2", 47665)


async def test_what_happens_at_another_place_does_not_concern_it(changes):
    changes.shelf.drop("a", HostPort("10.0.0.9", 47665))
    assert changes.shelf.nodes == [Node()]
    changes.shelf.drop("a", HostPort("10.0.0.1", 47665))
    assert changes.shelf.nodes == []
