"""The same questions over HTTP in the same way, whoever answers."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class HttpRun:
    """One measured run over HTTP."""

    ttft_seconds: float
    """Of the first client."""
    decode_tokens_per_second: float
    """Of the first client, after its first token."""
    total_tokens_per_second: float
    """All clients together, over the whole time."""


class HttpServer(Protocol):
    """One that is measured over HTTP."""

    name: str

    async def ask(self, prompts: Sequence[str], max_tokens: int) -> HttpRun:
        """Answer all prompts at once."""

    def pause(self) -> None:
        """Let the others have the machine."""

    def resume(self) -> None:
        """Go on."""


async def ask_over_http(url: str, model: str | None, prompts: Sequence[str], max_tokens: int) -> HttpRun:
    """All prompts at once, streamed."""
    begin = time.perf_counter()
    async with aiohttp.ClientSession() as http:
        answers = await asyncio.gather(*(_streamed(http, url, model, prompt, max_tokens) for prompt in prompts))
    first, last, count = answers[0]
    total = sum(count for _, _, count in answers)
    end = max(last for _, last, _ in answers)
    return HttpRun(first - begin, (count - 1) / max(last - first, 1e-9), total / (end - begin))


async def _streamed(
    http: aiohttp.ClientSession, url: str, model: str | None, prompt: str, max_tokens: int
) -> tuple[float, float, int]:
    """When the first and the last piece came, and how many tokens the server says that there were."""
    body = {
        **({"model": model} if model is not None else {}),
        "prompt": prompt,
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    times: list[float] = []
    tokens = 0
    async with http.post(url, json=body, timeout=aiohttp.ClientTimeout(total=600)) as response:
        response.raise_for_status()
        async for line in response.content:
            if not line.startswith(b"data: {"):
                continue
            piece = json.loads(line[6:])
            if piece["choices"]:
                times.append(time.perf_counter())
            elif piece.get("usage"):
                tokens = piece["usage"]["completion_tokens"]
    return times[0], times[-1], tokens
