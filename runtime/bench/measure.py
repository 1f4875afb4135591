"""Measures a running model: clients that ask at once, each with a prompt of its own, so that no cache helps."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, Any

import aiohttp

from runtime.bench.order import RoundDone
from runtime.bench.table import Round, StageTime, measured
from runtime.errors import PomonaError
from runtime.models.config import read_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from pathlib import Path

    from runtime.bench.order import BenchOrder
    from runtime.bench.table import Measured
    from runtime.cluster.messages import RankHeld, Serving, StageTimes

_TOKENS_FROM, _TOKENS_TO = 100, 20_000
"""Prompts are random ids between these: below are special tokens, and every vocabulary has so many."""
_REQUEST_SECONDS = 3600.0
_SETTLE_SECONDS = 0.3
"""Statistics come ten times a second; so long after a round they have all come."""


async def measure(
    serving: Serving,
    ranks: Sequence[RankHeld],
    model_folder: Path,
    order: BenchOrder,
    counters: Callable[[], Sequence[StageTimes]],
) -> AsyncIterator[RoundDone | Measured]:
    """Every round and, after its rounds, every row.

    ``counters`` gives what the ranks have counted by now. Raises :class:`PomonaError` when an answer breaks off.
    """
    settings = await asyncio.to_thread(read_settings, model_folder)
    asking = _Asking(serving, int(settings.get("vocab_size") or _TOKENS_TO))
    headers = {"Authorization": f"Bearer {serving.api_key}"} if serving.api_key else {}
    timeout = aiohttp.ClientTimeout(total=_REQUEST_SECONDS)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as http:
        for prompt_tokens in order.prompt_tokens:
            for clients in order.concurrency:
                rounds: list[Round] = []
                stages: list[StageTime] = []
                for number in range(order.repeats + 1):
                    before = counters()
                    done = await asking.round(http, prompt_tokens, order.answer_tokens, clients)
                    if number:
                        rounds.append(done)
                        stages += _stage_times(ranks, before, counters())
                    total = clients * order.answer_tokens / done.seconds
                    yield RoundDone(prompt_tokens, clients, number, total)
                yield measured(prompt_tokens, order.answer_tokens, clients, rounds, stages)


def _stage_times(
    ranks: Sequence[RankHeld], before: Sequence[StageTimes], after: Sequence[StageTimes]
) -> Iterator[StageTime]:
    earlier, later = ({one.rank: one for one in counted} for counted in (before, after))
    for held in ranks:
        if held.rank not in earlier or held.rank not in later:
            continue
        one, other = earlier[held.rank], later[held.rank]
        steps = max(other.steps - one.steps, 1)
        yield StageTime(
            held.node_name,
            held.first_layer,
            held.last_layer,
            (other.compute_seconds - one.compute_seconds) / steps,
            (other.wait_seconds - one.wait_seconds) / steps,
            (other.send_seconds - one.send_seconds) / steps,
        )


class _Asking:
    """Asks over HTTP."""

    def __init__(self, serving: Serving, vocabulary: int) -> None:
        self._url = f"{serving.address}/completions"
        self._model = serving.model
        self._tokens = range(min(_TOKENS_FROM, vocabulary // 2), min(_TOKENS_TO, vocabulary))
        self._random = random.Random(time.monotonic_ns())  # noqa: S311  no secret

    async def round(self, http: aiohttp.ClientSession, prompt_tokens: int, answer_tokens: int, clients: int) -> Round:
        """So many clients at once."""
        prompts = [self._random.choices(self._tokens, k=prompt_tokens) for _ in range(clients)]
        begin = time.perf_counter()
        answers = await asyncio.gather(*(self._answer(http, prompt, answer_tokens) for prompt in prompts))
        seconds = max(last for _, last in answers) - begin
        firsts = tuple(first - begin for first, _ in answers)
        decodes = tuple(last - first for first, last in answers)
        await asyncio.sleep(_SETTLE_SECONDS)
        return Round(seconds, firsts, decodes)

    async def _answer(self, http: aiohttp.ClientSession, prompt: list[int], answer_tokens: int) -> tuple[float, float]:
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
        try:
            async with http.post(self._url, json=body) as response:
                if not response.ok:
                    raise PomonaError(f"The model did not answer: {(await response.text())[:200]}")
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        if b'"error"' in line:
                            raise PomonaError(f"The answer broke off: {line.decode()[:200]}")
                        times.append(time.perf_counter())
        except aiohttp.ClientError as error:
            raise PomonaError("The answer broke off, so nothing more was measured.") from error
        if not times:
            raise PomonaError("The answer was empty, so nothing was measured.")
        return times[0], times[-1]
