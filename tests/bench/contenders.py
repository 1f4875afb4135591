"""Who is measured: Pomona's ranks, mlx-lm's server over its own pipeline, and mlx-lm unsplit.

All answer the same prompts greedily. The others' processes are stopped (SIGSTOP) while one is measured, because ranks
of MLX's ring keep a core busy while they wait.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import aiohttp
import psutil
from tokenizers import Tokenizer

from runtime.cluster.local_ranks import LocalRanks
from runtime.engine.frames import Done, Generated, Sampling, Submit
from runtime.models.layout import read_layout
from runtime.planning.plan import Plan, PlanNode, make_plan
from tests.bench.asking import ask_over_http

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tests.bench.asking import HttpRun

_START_SECONDS = 120.0


@dataclass(frozen=True)
class Run:
    """One measured run of one or more streams at once."""

    ttft_seconds: float
    """Of the first stream."""
    tokens_per_second: float
    """All streams together, after every one has its first token."""


class Contender(Protocol):
    """One of those that are measured."""

    name: str

    async def run(self, prompts: Sequence[str], max_tokens: int) -> Run:
        """Answer all prompts at once."""

    def pause(self) -> None:
        """Let the others have the machine."""

    def resume(self) -> None:
        """Go on."""


class _Clock:
    """Times of tokens, by stream."""

    def __init__(self, streams: int) -> None:
        self._begin = time.perf_counter()
        self._times: list[list[float]] = [[] for _ in range(streams)]

    def token(self, stream: int) -> None:
        self._times[stream].append(time.perf_counter())

    def run(self) -> Run:
        everyone_began = max(times[0] for times in self._times)
        end = max(times[-1] for times in self._times)
        later = sum(moment > everyone_began for times in self._times for moment in times)
        return Run(self._times[0][0] - self._begin, later / max(end - everyone_began, 1e-9))


class PomonaRanks:
    """Worker processes of this project over a split."""

    def __init__(self, ranks: LocalRanks, folder: Path, name: str) -> None:
        self.name = name
        self._ranks = ranks
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._next_request = 0

    @classmethod
    @asynccontextmanager
    async def start(cls, folder: Path, split: Sequence[int]) -> AsyncIterator[Contender]:
        nodes = [PlanNode(str(index), f"rank {index}", 1 << 40) for index in range(len(split))]
        plan = make_plan(read_layout(folder), nodes, split)
        if not isinstance(plan, Plan):
            raise SystemExit(plan.reason)
        async with LocalRanks(plan, folder) as ranks:
            yield cls(ranks, folder, f"pomona, {len(split)} stages" if len(split) > 1 else "pomona, 1 stage")

    async def run(self, prompts: Sequence[str], max_tokens: int) -> Run:
        first = self._next_request
        self._next_request += len(prompts)
        clock = _Clock(len(prompts))
        for index, prompt in enumerate(prompts):
            tokens = tuple(self._tokenizer.encode(prompt).ids)
            await self._ranks.send(Submit(first + index, tokens, max_tokens, (), Sampling()))
        open_requests = len(prompts)
        while open_requests:
            match await self._ranks.next_frame():
                case Generated(requests):
                    for request in requests:
                        clock.token(request - first)
                case Done():
                    open_requests -= 1
                case _:
                    pass
        return clock.run()

    def pause(self) -> None:
        for pid in self._ranks.pids:
            os.killpg(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in self._ranks.pids:
            os.killpg(pid, signal.SIGCONT)


class MlxServer:
    """``mlx.launch`` with ``mlx_lm.server --pipeline``, or the server alone for one rank; asked over HTTP."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, name: str) -> None:
        self.name = name
        self._pid = process.pid
        self._url = f"http://127.0.0.1:{port}/v1/completions"

    @classmethod
    @asynccontextmanager
    async def start(cls, folder: Path, rank_count: int) -> AsyncIterator[MlxServer]:
        port, ring_port = _free_port(), _free_port()
        server = [sys.executable, "-m", "mlx_lm", "server", "--model", str(folder), "--port", str(port)]
        if rank_count > 1:
            launch = [str(Path(sys.executable).with_name("mlx.launch")), "--backend", "ring", "-n", str(rank_count)]
            server = [*launch, "--starting-port", str(ring_port), "--", *server, "--pipeline"]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
        process = await asyncio.create_subprocess_exec(
            *server, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL, env=environment, start_new_session=True,
        )  # fmt: skip
        print(" ", " ".join(server), flush=True)
        try:
            await _answers(f"http://127.0.0.1:{port}/health")
            contender = cls(process, port, f"mlx-lm, {rank_count} ranks" if rank_count > 1 else "mlx-lm, unsplit")
            await contender.run(["Once upon a time"], 2)  # loads the model
            yield contender
        finally:
            for one in _family(process.pid):  # mlx.launch alone would leave its ranks running
                one.kill()
            await process.wait()

    async def run(self, prompts: Sequence[str], max_tokens: int) -> Run:
        clock = _Clock(len(prompts))
        async with aiohttp.ClientSession() as http:
            await asyncio.gather(
                *(self._stream(http, prompt, max_tokens, clock, stream) for stream, prompt in enumerate(prompts))
            )
        return clock.run()

    async def ask(self, prompts: Sequence[str], max_tokens: int) -> HttpRun:
        return await ask_over_http(self._url, None, prompts, max_tokens)

    def pause(self) -> None:
        for process in _family(self._pid):
            process.suspend()

    def resume(self) -> None:
        for process in _family(self._pid):
            process.resume()

    async def _stream(
        self, http: aiohttp.ClientSession, prompt: str, max_tokens: int, clock: _Clock, stream: int
    ) -> None:
        body = {"prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "stream": True}
        async with http.post(self._url, json=body, timeout=aiohttp.ClientTimeout(total=600)) as response:
            response.raise_for_status()
            async for line in response.content:
                if line.startswith(b"data: {") and json.loads(line[6:])["choices"]:
                    clock.token(stream)


def _family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


async def _answers(url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    async with aiohttp.ClientSession() as http:
        while True:
            try:
                async with http.get(url) as response:
                    if response.ok:
                        return
            except aiohttp.ClientError:
                pass
            if time.monotonic() > deadline:
                raise SystemExit(f"nobody answers at {url}")
            await asyncio.sleep(0.2)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
