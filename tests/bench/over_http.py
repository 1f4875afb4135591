"""Over HTTP, as programs ask: ``pomona serve`` beside ``mlx_lm.server --pipeline``, with the same weights and split.

    python -m tests.bench.over_http [--rounds 3] [--tokens 48] [--only NAME ...]

Runs alternate; medians with their spread, and ratios of medians. Last, the second turn of a long chat beside its first.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from runtime.models.demo import demo_model_folder
from tests.bench.__main__ import LONG_PROMPT, STORY, SUBJECTS
from tests.bench.contenders import MlxServer
from tests.bench.models import demo_as_qwen2
from tests.bench.pomona_server import PomonaServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.asking import HttpRun, HttpServer

WANTED = {"one client": 1.4, "8 clients": 2.0, "first token of a 1k prompt": 1 / 0.7}
"""Of our speed over the other's."""
SECOND_TURN_SHARE = 0.15


def _speed(case: str, run: HttpRun) -> float:
    if case == "one client":
        return run.decode_tokens_per_second
    return run.total_tokens_per_second if case == "8 clients" else 1 / run.ttft_seconds


async def compare(folder: Path, split: Sequence[int], rounds: int, tokens: int, only: Sequence[str]) -> None:
    """All cases, each with alternating runs."""
    prompts = {
        "one client": ((STORY,), tokens),
        "8 clients": (tuple(f"Tell me about the {subject}. {STORY}" for subject in SUBJECTS), tokens),
        "first token of a 1k prompt": ((LONG_PROMPT,), 2),
    }
    async with AsyncExitStack() as stack:
        servers: list[HttpServer] = []
        for starting in (PomonaServer.start(folder, split), MlxServer.start(folder, len(split))):
            servers.append(await stack.enter_async_context(starting))
            servers[-1].pause()
        for case, (texts, count) in prompts.items():
            if not all(part in case for part in only):
                continue
            speeds: dict[str, list[float]] = {server.name: [] for server in servers}
            for turn in range(rounds + 1):  # the first is a warm-up
                for server in servers:
                    server.resume()
                    run = await server.ask([f"{turn}. {text}" for text in texts], count)
                    server.pause()
                    if turn:
                        speeds[server.name].append(_speed(case, run))
            ours, theirs = (statistics.median(speeds[server.name]) for server in servers)
            print(f"\n{case}", flush=True)
            for name, values in speeds.items():
                print(f"  {name:<28} {statistics.median(values):8.3f}  ({min(values):.3f} to {max(values):.3f})")
            print(f"  ratio {ours / theirs:.2f}, wanted {WANTED[case]:.2f}", flush=True)
        for server in servers:
            server.resume()


async def second_turn(folder: Path, split: Sequence[int], rounds: int) -> None:
    """Time to first token of a chat's second turn over that of its first."""
    shares, tokens = [], 0
    async with PomonaServer.start(folder, split) as server, aiohttp.ClientSession() as http:
        for turn in range(rounds + 1):
            text = f"{turn}. {LONG_PROMPT} {LONG_PROMPT}"
            first_seconds, answer, tokens = await server.chat(http, [{"role": "user", "content": text}])
            turns = [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
            second_seconds, _, _ = await server.chat(http, [*turns, {"role": "user", "content": "And then?"}])
            if turn:
                shares.append(second_seconds / first_seconds)
        share = statistics.median(shares)
        print(
            f"\nsecond turn of a chat of {tokens} tokens: its first token takes {share:.1%} of the first turn's ",
            end="",
        )
        print(f"({min(shares):.1%} to {max(shares):.1%}), wanted below {SECOND_TURN_SHARE:.0%}")


async def run(arguments: Sequence[str] | None = None) -> None:
    """Everything on the demo's weights."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.over_http")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--only", nargs="*", default=(), help="parts of case names")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="pomona-bench-") as scratch:
        folder = demo_as_qwen2(demo_model_folder(), Path(scratch) / "qwen2")
        await compare(folder, (15, 15), options.rounds, options.tokens, options.only)
        if not options.only:
            await second_turn(folder, (15, 15), options.rounds)


if __name__ == "__main__":
    asyncio.run(run())
