"""``make bench``: how fast the token loop is beside mlx-lm's own pipeline and beside mlx-lm unsplit.

    python -m tests.bench [--rounds 3] [--tokens 48] [--only NAME ...]

Runs alternate, the others stopped meanwhile; medians with their spread, and ratios of medians.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.models.demo import demo_model_folder
from tests.bench.contenders import MlxServer, PomonaRanks
from tests.bench.models import demo_as_qwen2, random_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.contenders import Contender, Run

STORY = "Once upon a time there was a fox who lived at the edge of a forest."
SUBJECTS = ("fox", "bear", "lake", "tower", "ship", "garden", "river", "king")
LONG_PROMPT = " ".join(f"The {subject} stood by the old bridge and waited." for subject in SUBJECTS * 12)
"""About a thousand tokens."""


@dataclass(frozen=True)
class Case:
    """One row group: who runs what, and which ratio is wanted of the first over each other."""

    name: str
    split: tuple[int, ...]
    ranks: int
    streams: int
    prompts: tuple[str, ...]
    tokens: int
    measure: str
    """``decode`` (tokens per second, more is better) or ``ttft`` (seconds, less is better)."""


def cases(layers: int, tokens: int) -> list[Case]:
    """Those of the issue, for a model with so many layers."""
    half, third = (layers // 2, layers - layers // 2), (layers // 3, layers // 3, layers - 2 * (layers // 3))
    many = tuple(f"Tell me about the {subject}. {STORY}" for subject in SUBJECTS)
    return [
        Case("one stream, 2 stages", half, 2, 1, (STORY,), tokens, "decode"),
        Case("one stream, 3 stages", third, 3, 1, (STORY,), tokens, "decode"),
        Case("8 streams, 2 stages", half, 2, 8, many, tokens, "decode"),
        Case("first token of a long prompt, 2 stages", half, 2, 1, (LONG_PROMPT,), 2, "ttft"),
    ]


async def measure(folder: Path, case: Case, rounds: int) -> None:
    """Run one case and print its rows."""
    async with AsyncExitStack() as stack:
        contenders: list[Contender] = []
        for starting in (
            PomonaRanks.start(folder, case.split),
            MlxServer.start(folder, case.ranks),
            MlxServer.start(folder, 1),
        ):
            contenders.append(await stack.enter_async_context(starting))
            contenders[-1].pause()
        results: dict[str, list[float]] = {contender.name: [] for contender in contenders}
        for turn in range(rounds + 1):  # the first is a warm-up
            for contender in contenders:
                contender.resume()
                # Another beginning each time, so that no prefix cache answers.
                run = await contender.run([f"{turn}. {prompt}" for prompt in case.prompts], case.tokens)
                contender.pause()
                if turn:
                    results[contender.name].append(_value(run, case.measure))
        for contender in contenders:
            contender.resume()
    _print(case, results)


def _value(run: Run, measure: str) -> float:
    return run.tokens_per_second if measure == "decode" else run.ttft_seconds


def _print(case: Case, results: dict[str, list[float]]) -> None:
    ours = statistics.median(next(iter(results.values())))
    unit = "tok/s" if case.measure == "decode" else "s"
    print(f"\n{case.name} ({case.tokens} tokens a stream, split {','.join(map(str, case.split))})", flush=True)
    for name, values in results.items():
        middle = statistics.median(values)
        print(f"  {name:<20} {middle:8.2f} {unit}  ({min(values):.2f} to {max(values):.2f})  ratio {ours / middle:.2f}")


async def run(arguments: Sequence[str] | None = None) -> None:
    """All cases on all models."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--only", nargs="*", default=(), help="parts of case or model names")
    options = parser.parse_args(arguments)
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, mlx {version('mlx')}, ",
        end="",
    )
    print(f"mlx-lm {version('mlx-lm')}, {options.rounds} rounds", flush=True)
    with tempfile.TemporaryDirectory(prefix="pomona-bench-") as scratch:
        demo = demo_model_folder()
        models = {
            "demo model as Qwen2, 30 layers, 4 bit": (demo_as_qwen2(demo, Path(scratch) / "qwen2"), 30),
            "random Qwen2, 12 layers, float32": (random_model(demo, Path(scratch) / "random"), 12),
        }
        for model, (folder, layers) in models.items():
            for case in cases(layers, options.tokens):
                if all(part in f"{model} {case.name}" for part in options.only):
                    print(f"\n== {model}")
                    await measure(folder, case, options.rounds)


if __name__ == "__main__":
    asyncio.run(run())
