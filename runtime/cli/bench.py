"""``pomona bench``: how fast a model is where it runs, over the same API that programs use."""

from __future__ import annotations

import asyncio
import random
import secrets
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import msgspec

from runtime.cli.bench_report import Measured, Round, StageTime, csv_lines, markdown_lines, measured, text_lines
from runtime.cli.demo import run_until_over
from runtime.cli.place import note, placed
from runtime.cli.progress import Progress
from runtime.cluster.client import SessionClient
from runtime.cluster.messages import Failed, Ready, Statistics
from runtime.errors import PomonaError
from runtime.models.config import read_settings
from runtime.planning.plan import even_split
from runtime.server.options import ApiOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from runtime.cli.place import Place, PlaceOptions
    from runtime.cluster.messages import RankHeld, ServerMessage, StageTimes

_TOKENS_FROM, _TOKENS_TO = 100, 20_000
"""Prompts are random ids between these: below are special tokens, and every vocabulary has so many."""
_REQUEST_SECONDS = 3600.0
_SETTLE_SECONDS = 0.3
"""Statistics come ten times a second; so long after a round they have all come."""


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to measure, as asked for on the command line."""

    place: PlaceOptions
    prompt_tokens: tuple[int, ...] = (512,)
    answer_tokens: int = 128
    concurrency: tuple[int, ...] = (1,)
    repeats: int = 3
    compare_even: bool = False
    form: str = "text"
    """``text``, ``json``, ``markdown`` or ``csv``."""


def run_bench(options: BenchOptions) -> int:
    """Measure, print a table, and return the exit status. Raises :class:`PomonaError`."""
    return run_until_over(_run(options))


async def _run(options: BenchOptions) -> int:
    async with placed(options.place) as place:
        rows = await _split_rows(place, None, options)
        if options.compare_even:
            layers, count = len(place.layout.layer_bytes), len(place.nodes)
            rows += await _split_rows(place, tuple(even_split(layers, count)), options)
    match options.form:
        case "json":
            lines = [msgspec.json.encode(rows).decode()]
        case "csv":
            lines = csv_lines(rows)
        case "markdown":
            lines = markdown_lines(rows)
        case _:
            lines = text_lines(rows)
    sys.stdout.write("\n".join([*lines, ""]))
    return 0


async def _split_rows(place: Place, split: Sequence[int] | None, options: BenchOptions) -> list[Measured]:
    """Every prompt length with every number of clients, on one split."""
    longest = max(options.prompt_tokens) + options.answer_tokens
    plan = place.plan(split)
    if plan.context_tokens and longest > plan.context_tokens:
        raise PomonaError(
            f"Prompt and answer have {longest} tokens, and the plan has room for {plan.context_tokens}; "
            f"say --context {longest}."
        )
    key = secrets.token_urlsafe(16)
    client = await SessionClient.start(
        plan,
        place.folder,
        place.nodes,
        place.home,
        keep_running=False,
        folder_on=place.folder_on,
        api=ApiOptions(port=0, api_key=key),
    )
    try:
        events = client.events()
        progress = Progress()
        ready = await progress.until_ready(events)
        if not isinstance(ready, Ready) or progress.serving is None:
            raise PomonaError("The model did not start, so nothing was measured.")
        async with _Asking(progress.serving.address, progress.serving.model, key, place) as asking:
            watching = asyncio.create_task(asking.watch(events), name="statistics")
            try:
                return [
                    await _row(asking, ready.ranks, prompt, clients, options)
                    for prompt in options.prompt_tokens
                    for clients in options.concurrency
                ]
            finally:
                watching.cancel()
    finally:
        await client.close()


async def _row(
    asking: _Asking, ranks: Sequence[RankHeld], prompt_tokens: int, clients: int, options: BenchOptions
) -> Measured:
    rounds: list[Round] = []
    stages: list[StageTime] = []
    for number in range(options.repeats + 1):  # the first warms up
        before = asking.stages
        done = await asking.round(prompt_tokens, options.answer_tokens, clients)
        if number:
            rounds.append(done)
            stages += [
                StageTime(
                    rank.node_name,
                    rank.first_layer,
                    rank.last_layer,
                    (after.compute_seconds - earlier.compute_seconds) / max(after.steps - earlier.steps, 1),
                    (after.wait_seconds - earlier.wait_seconds) / max(after.steps - earlier.steps, 1),
                    (after.send_seconds - earlier.send_seconds) / max(after.steps - earlier.steps, 1),
                )
                for rank, earlier, after in zip(ranks, before, asking.stages, strict=False)
            ]
        total = clients * options.answer_tokens / done.seconds
        note(
            f"prompt {prompt_tokens}, {clients} at once, {'round ' + str(number) if number else 'warm-up'}: {total:.1f}"
        )
    return measured(prompt_tokens, options.answer_tokens, clients, rounds, stages)


class _Asking:
    """Asks over HTTP, and remembers what the ranks have counted."""

    def __init__(self, address: str, model: str, key: str, place: Place) -> None:
        self._url = f"{address}/completions"
        self._model = model
        headers = {"Authorization": f"Bearer {key}"}
        timeout = aiohttp.ClientTimeout(total=_REQUEST_SECONDS)
        self._http = aiohttp.ClientSession(headers=headers, timeout=timeout)
        vocabulary = read_settings(place.folder).get("vocab_size") or _TOKENS_TO
        self._tokens = range(min(_TOKENS_FROM, vocabulary // 2), min(_TOKENS_TO, vocabulary))
        self._random = random.Random(0)  # noqa: S311  the same prompts each time, and no secret
        self.stages: tuple[StageTimes, ...] = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def watch(self, events: AsyncIterator[ServerMessage]) -> None:
        """Keep the newest counters. Raises :class:`PomonaError` when the session fails."""
        async for event in events:
            match event:
                case Statistics(stages=stages):
                    self.stages = stages
                case Failed(reason):
                    raise PomonaError(reason)
                case _:
                    pass

    async def round(self, prompt_tokens: int, answer_tokens: int, clients: int) -> Round:
        """So many clients at once, each with a prompt of its own, so that no cache answers."""
        prompts = [self._random.choices(self._tokens, k=prompt_tokens) for _ in range(clients)]
        begin = time.perf_counter()
        answers = await asyncio.gather(*(self._answer(prompt, answer_tokens) for prompt in prompts))
        seconds = max(last for _, last in answers) - begin
        firsts = tuple(first - begin for first, _ in answers)
        decodes = tuple(last - first for first, last in answers)
        await asyncio.sleep(_SETTLE_SECONDS)
        return Round(seconds, firsts, decodes)

    async def _answer(self, prompt: list[int], answer_tokens: int) -> tuple[float, float]:
        """When the first and the last piece came."""
        body: dict[str, Any] = {
            "model": self._model,
            "prompt": prompt,
            "max_tokens": answer_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
        }
        times: list[float] = []
        async with self._http.post(self._url, json=body) as response:
            if not response.ok:
                raise PomonaError(f"The model did not answer: {(await response.text())[:200]}")
            async for line in response.content:
                if line.startswith(b"data: {"):
                    if b'"error"' in line:
                        raise PomonaError(f"The answer broke off: {line.decode()[:200]}")
                    times.append(time.perf_counter())
        return times[0], times[-1]
