"""A benchmark: its totals, and what it asks of a server."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from runtime.bench.measure import measure
from runtime.bench.order import BenchOrder, RoundDone
from runtime.bench.table import Round, StageTime, csv_lines, markdown_lines, measured, text_lines
from runtime.cluster.messages import RankHeld, Serving, StageTimes
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

RANKS = [RankHeld(0, "a", "Studio", 0, 4, 10, 10), RankHeld(1, "b", "mini", 5, 9, 10, 10)]


def test_a_benchmark_is_honest_about_its_totals():
    rounds = [Round(4.0, (1.0, 2.0), (2.0, 2.0)), Round(2.0, (0.5, 1.0), (1.0, 1.0))]
    stages = [StageTime("Studio", 0, 4, seconds, 0.0, 0.0) for seconds in (0.010, 0.020)]
    row = measured(100, 11, 2, rounds, stages)
    assert row.total_tokens_per_second.least == 2 * 11 / 4
    assert row.total_tokens_per_second.most == 2 * 11 / 2
    assert row.prefill_tokens_per_second.least == 2 * 100 / 2.0
    assert row.decode_tokens_per_second.median == pytest.approx(7.5)
    assert row.ttft_seconds.median == 1.0
    assert row.split == "Studio 5"
    assert "15.0" in text_lines([row])[1]
    assert markdown_lines([row])[1].startswith("| --- |")
    names, numbers = (line.split(",") for line in csv_lines([row]))
    assert len(names) == len(numbers)
    assert dict(zip(names, numbers, strict=True))["total_tokens_per_second_least"] == "5.5000"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 300}))
    return tmp_path


@asynccontextmanager
async def api(answer: Callable[[web.Request], list[bytes]]) -> AsyncIterator[str]:
    """A server that streams what ``answer`` gives for a request."""

    async def complete(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await request.read()
        for line in answer(request):
            await response.write(line)
        return response

    application = web.Application()
    application.router.add_post("/v1/completions", complete)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"{site.name.replace('0.0.0.0', '127.0.0.1')}/v1"
    finally:
        await runner.cleanup()


def counted(steps: int) -> list[StageTimes]:
    """Ranks in another order than the stages: what counts is who a rank is."""
    return [
        StageTimes(1, "b", steps, steps, 0.020 * steps, 0.0, 0.0, 0, 0, 0),
        StageTimes(0, "a", steps, steps, 0.010 * steps, 0.0, 0.0, 0, 0, 0),
    ]


async def test_each_client_asks_something_of_its_own_and_stages_are_told_apart_by_rank(folder):
    prompts: list[tuple[int, ...]] = []
    steps = 0

    async def read(request: web.Request) -> None:
        body = await request.json()
        prompts.append(tuple(body["prompt"]))
        assert body["max_tokens"] == 16
        assert request.headers["Authorization"] == "Bearer sesame"

    asked: list[web.Request] = []

    def answer(request: web.Request) -> list[bytes]:
        nonlocal steps
        steps += 7
        asked.append(request)
        return [b'data: {"choices": []}\n\n'] * 16

    async with api(answer) as address:
        serving = Serving(address, "smol", "sesame")
        order = BenchOrder((8,), 16, (1, 2), 2)
        told = [one async for one in measure(serving, RANKS, folder, order, lambda: counted(steps))]
        for request in asked:
            await read(request)
    rounds = [one for one in told if isinstance(one, RoundDone)]
    rows = [one for one in told if not isinstance(one, RoundDone)]
    assert [(one.clients, one.number) for one in rounds] == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    assert len(rounds) == order.round_count
    assert len(set(prompts)) == len(prompts) == 9
    assert all(len(prompt) == 8 and max(prompt) < 300 for prompt in prompts)
    assert [(stage.node, round(stage.compute_seconds, 6)) for stage in rows[0].stages] == [
        ("Studio", 0.010),
        ("mini", 0.020),
    ]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [([b'data: {"error": {"message": "a rank is gone"}}\n\n'], "a rank is gone"), ([], "empty")],
)
async def test_an_answer_that_breaks_off_ends_it(folder, lines, reason):
    async with api(lambda _request: lines) as address:
        with pytest.raises(PomonaError, match=reason):
            async for _ in measure(Serving(address, "smol"), RANKS, folder, BenchOrder(), list):
                pass


async def test_a_server_that_is_gone_is_told_in_a_sentence(folder):
    async with api(lambda _request: []) as address:
        pass
    with pytest.raises(PomonaError, match="broke off"):
        async for _ in measure(Serving(address, "smol"), RANKS, folder, BenchOrder(), list):
            pass


def test_what_has_no_room_in_the_context_is_told_before():
    assert BenchOrder((512, 8000), 256).too_long(8192) == (
        "Prompt and answer have 8256 tokens, and the plan has room for 8192"
    )
    assert BenchOrder((512,), 256).too_long(8192) is None
    assert BenchOrder((512,), 256).too_long(0) is None
