"""Who waits for room, and whose turn it is."""

from __future__ import annotations

from runtime.engine.frames import Sampling, Submit
from runtime.engine.waiting import WAITING_LIMIT, Waiting


def submit(request: int, client: str) -> Submit:
    return Submit(request, (1,), 1, (), Sampling(), client=client)


def drain(waiting: Waiting) -> list[int]:
    order = []
    while (first := waiting.first()) is not None:
        order.append(first.request)
        waiting.take()
    return order


def test_clients_take_turns_and_each_keeps_its_order():
    waiting = Waiting()
    for request in range(5):
        waiting.add(submit(request, "many"))
    waiting.add(submit(10, "one"))
    waiting.add(submit(20, "two"))
    waiting.add(submit(21, "two"))
    assert drain(waiting) == [0, 10, 20, 1, 21, 2, 3, 4]
    assert len(waiting) == 0


def test_whoever_is_first_stays_first_until_it_is_taken():
    waiting = Waiting()
    waiting.add(submit(0, "large"))
    waiting.add(submit(1, "small"))
    assert [waiting.first(), waiting.first()] == [submit(0, "large")] * 2


def test_one_that_waits_can_be_removed_anywhere():
    waiting = Waiting()
    for request, client in enumerate("abab"):
        waiting.add(submit(request, client))
    waiting.remove(2)
    waiting.remove(1)
    assert 1 not in waiting
    assert drain(waiting) == [0, 3]


def test_no_more_than_the_limit_wait():
    waiting = Waiting()
    for request in range(WAITING_LIMIT):
        assert not waiting.is_full
        waiting.add(submit(request, str(request % 7)))
    assert waiting.is_full
