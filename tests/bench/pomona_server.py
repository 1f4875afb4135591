"""``pomona serve`` as one of those that are measured over HTTP."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tests.bench.asking import ask_over_http

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    import aiohttp

    from tests.bench.asking import HttpRun


class PomonaServer:
    """``pomona serve`` over virtual nodes. Its processes sleep while they wait, so pausing them is not needed."""

    def __init__(self, address: str, model: str, name: str) -> None:
        self.name = name
        self._address = address
        self._model = model

    @classmethod
    @asynccontextmanager
    async def start(cls, folder: Path, split: Sequence[int]) -> AsyncIterator[PomonaServer]:
        words = ["--virtual-nodes", str(len(split)), "--split", ",".join(map(str, split)), "--port", "0"]
        command = [sys.executable, "-P", "-m", "pomona", "serve", str(folder), *words]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        print(" ", " ".join(command), flush=True)
        assert process.stdout is not None
        try:
            model, _, _, _, address = (await process.stdout.readline()).decode().split()[:5]
            server = cls(address, model, f"pomona serve, {len(split)} stages")
            await server.ask(["Once upon a time"], 2)
            yield server
        finally:
            process.terminate()
            await process.wait()

    async def ask(self, prompts: Sequence[str], max_tokens: int) -> HttpRun:
        return await ask_over_http(f"{self._address}/completions", self._model, prompts, max_tokens)

    async def chat(self, http: aiohttp.ClientSession, messages: Sequence[dict[str, str]]) -> tuple[float, str, int]:
        """Seconds to the first token, a short answer, and the prompt's tokens."""
        body = {
            "model": self._model,
            "messages": messages,
            "max_tokens": 8,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        begin = time.perf_counter()
        first: float | None = None
        text, tokens = "", 0
        async with http.post(f"{self._address}/chat/completions", json=body) as response:
            response.raise_for_status()
            async for line in response.content:
                if line.startswith(b"data: {"):
                    piece = json.loads(line[6:])
                    tokens = (piece.get("usage") or {}).get("prompt_tokens", tokens)
                    for choice in piece["choices"]:
                        if content := choice["delta"].get("content"):
                            first = first or time.perf_counter()
                            text += content
        assert first is not None
        return first - begin, text, tokens

    def pause(self) -> None:
        """Nothing to do."""

    def resume(self) -> None:
        """The same."""
