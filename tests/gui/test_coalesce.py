"""Fewer messages, none lost, none out of order."""

import asyncio

import pytest

from gui.coalesce import STATS_SECONDS, TEXT_SECONDS, Coalescer, merged
from runtime.cluster.messages import Ended, Finished, LoadProgress, ServerMessage, Text, Throughput


class Inbox(list[ServerMessage]):
    """What was delivered, and a way to wait for more."""

    def __init__(self):
        super().__init__()
        self.news = asyncio.Event()

    def take(self, message):
        self.append(message)
        self.news.set()

    async def until(self, count):
        while len(self) < count:
            self.news.clear()
            async with asyncio.timeout(5):
                await self.news.wait()


@pytest.fixture
async def inbox():
    return Inbox()


async def test_the_first_token_comes_at_once_and_the_rest_of_a_burst_together(inbox):
    coalescer = Coalescer(inbox.take)
    for index in range(10):
        coalescer.push(Text("1", str(index), (index,)))
    assert inbox == [Text("1", "0", (0,))]
    await inbox.until(2)
    assert inbox[1] == Text("1", "123456789", tuple(range(1, 10)))


async def test_answers_are_kept_apart(inbox):
    coalescer = Coalescer(inbox.take)
    for piece in ("a", "b"):
        coalescer.push(Text("1", piece, (1,)))
        coalescer.push(Text("2", piece.upper(), (2,)))
    coalescer.flush()
    assert ["".join(one.text for one in inbox if one.request_id == name) for name in "12"] == ["ab", "AB"]


async def test_the_end_of_an_answer_comes_after_all_its_text(inbox):
    coalescer = Coalescer(inbox.take)
    for index in range(3):
        coalescer.push(Text("1", str(index), (index,)))
    end = Finished("1", "stop", 1, 3, 0.1, 10.0)
    coalescer.push(end)
    assert "".join(one.text for one in inbox if isinstance(one, Text)) == "012"
    assert inbox[-1] == end


async def test_of_numbers_the_newest_counts(inbox):
    coalescer = Coalescer(inbox.take)
    for time in range(5):
        coalescer.push(Throughput(float(time), 10.0, 0.0, 1))
        coalescer.push(LoadProgress(0, "a", "A", "loading", time, 5))
    coalescer.push(Ended())
    assert [one.time_seconds for one in inbox if isinstance(one, Throughput)] == [0.0, 4.0]
    assert [one.loaded_bytes for one in inbox if isinstance(one, LoadProgress)] == [0, 4]
    assert inbox[-1] == Ended()


async def test_a_long_stream_is_delivered_at_the_promised_rate(inbox):
    coalescer = Coalescer(inbox.take)
    loop = asyncio.get_running_loop()
    start = loop.time()
    sent = 0
    while len(inbox) < 4:
        coalescer.push(Text("1", "x", (sent,)))
        sent += 1
        await asyncio.sleep(0)
    assert loop.time() - start >= 3 * TEXT_SECONDS * 0.9
    coalescer.flush()
    assert "".join(one.text for one in inbox) == "x" * sent


async def test_nothing_is_left_ticking_after_a_flush(inbox):
    coalescer = Coalescer(inbox.take)
    coalescer.push(Text("1", "a", (1,)))
    coalescer.push(Text("1", "b", (2,)))
    coalescer.flush()
    coalescer.flush()
    assert [one.text for one in inbox] == ["a", "b"]


def test_numbers_come_less_often_than_text():
    assert STATS_SECONDS > TEXT_SECONDS
    assert merged(None, Ended()) == Ended()
