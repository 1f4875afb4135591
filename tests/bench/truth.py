"""Does the planner tell the truth? ``python -m tests.bench.truth``: predicted beside measured, on unequal nodes.

Two virtual nodes have unequal shares of a core. Each is calibrated by itself, as ``pomona calibrate`` does. Then every
split of a small model that fits is run with one chat: what each stage takes for a token, and tokens per second.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import msgspec
from mlx_lm.utils import _get_classes, save_model

from resources.cpu_share import CpuShare, refusal
from resources.node import Calibration
from runtime.cluster.local_ranks import LocalRanks
from runtime.engine.frames import Done, Generated, Sampling, Submit
from runtime.models.planning_layout import read_planning_layout
from runtime.planning.cost import LinkSpeed
from runtime.planning.from_resources import calibrated_speed
from runtime.planning.plan import Link, Plan, PlanNode, make_plan

SHARES = {"quick": 0.8, "slow": 0.35}
"""Of one core."""
QUICK_HOLDS_LAYERS = 5
CONTEXT_TOKENS = 256
TOKENS, WARM_UP_TOKENS = 28, 4
WITHIN, OF_BEST = 0.20, 0.95
LOOPBACK = LinkSpeed(rtt_seconds=2e-4, bytes_per_second=1e9)
CONFIG: dict[str, Any] = {
    "model_type": "qwen2",
    "hidden_size": 768,
    "num_hidden_layers": 8,
    "intermediate_size": 2304,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-5,
    "vocab_size": 2048,
    "max_position_embeddings": 1024,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}


@dataclass(frozen=True)
class Measured:
    """One split, run."""

    plan: Plan
    stage_seconds: tuple[float, ...]
    tokens_per_second: float

    @property
    def name(self) -> str:
        return " ".join(f"{stage.ranks[0].node_name} {stage.layer_count}" for stage in self.plan.stages)

    @property
    def errors(self) -> list[float]:
        """Of each stage's prediction, as a part of what was measured."""
        pairs = zip(self.plan.stages, self.stage_seconds, strict=True)
        return [abs(stage.decode_seconds - seconds) / seconds for stage, seconds in pairs]

    @property
    def predicted(self) -> float:
        """Tokens per second of one chat."""
        assert self.plan.predicted is not None
        return self.plan.predicted.chat_tokens_per_second


def small_model(folder: Path) -> Path:
    """Noise in float32."""
    mx.random.seed(0)
    model_class, arguments_class = _get_classes(CONFIG)
    model = model_class(arguments_class.from_dict(CONFIG))
    folder.mkdir()
    save_model(folder, model)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def calibrated(share: CpuShare) -> Calibration:
    """What a process of that share measures; it waits for a line, so that all of it runs there."""
    code = "import sys; sys.stdin.readline(); from runtime.engine.calibrate import main; sys.exit(main())"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        share.take(process.pid)
        answer, _ = process.communicate(b"\n", timeout=120)
    return msgspec.json.decode(answer, type=Calibration)


async def run(ranks: LocalRanks, plan: Plan, request: int, shares: dict[str, CpuShare]) -> Measured:
    """One chat over ``plan``."""
    for rank, pid in zip(ranks.ranks, ranks.pids, strict=True):
        shares[rank.planned.node_id].take(pid)
    prompt = tuple((7 * place + request) % 2000 for place in range(16))
    await ranks.send(Submit(request, prompt, TOKENS, (), Sampling()))
    times: list[float] = []
    counted: list[tuple[int, float]] | None = None
    while True:
        match await ranks.next_frame():
            case Generated():
                times.append(time.perf_counter())
                if len(times) == WARM_UP_TOKENS:
                    counted = counters(ranks)
            case Done():
                break
            case _:
                pass
    await asyncio.sleep(0.3)  # the last sample comes a tenth of a second later
    assert counted is not None
    stages = tuple(
        (seconds - seconds_before) / max(steps - steps_before, 1)
        for (steps, seconds), (steps_before, seconds_before) in zip(counters(ranks), counted, strict=True)
    )
    rate = (len(times) - WARM_UP_TOKENS) / (times[-1] - times[WARM_UP_TOKENS - 1])
    return Measured(plan, stages, rate)


def counters(ranks: LocalRanks) -> list[tuple[int, float]]:
    """Steps and seconds of every rank, as last sampled."""
    found = (rank.statistics for rank in ranks.ranks)
    return [(counted.steps, counted.compute_seconds) if counted else (0, 0.0) for counted in found]


async def measure(folder: Path, shares: dict[str, CpuShare]) -> list[Measured]:
    """Every split that fits, the automatic one first."""
    layout = read_planning_layout(folder)
    assert layout.figures is not None
    layer_bytes = layout.layer_bytes[0]
    budgets = {
        "quick": layout.embedding_bytes + layout.head_bytes + round((QUICK_HOLDS_LAYERS + 0.7) * layer_bytes),
        "slow": layout.weight_bytes * 3,
    }
    nodes = []
    for name, share in shares.items():
        found = calibrated(share)
        rate = found.weight_bytes_per_second[layout.figures.weight_kind]
        overhead = found.layer_overhead_seconds
        print(
            f"{name}: {SHARES[name]:.2f} of a core, {rate / 1e9:.2f} GB/s, {overhead * 1e6:.0f} us a layer", flush=True
        )
        speed = calibrated_speed(found, layout.figures.weight_kind)
        assert speed is not None
        nodes.append(PlanNode(name, name, budgets[name], speed, 0))
    links = [Link("quick", "slow", LOOPBACK)]
    best = make_plan(layout, nodes, goal="chat", context_tokens=CONTEXT_TOKENS, links=links)
    assert isinstance(best, Plan), best
    count = len(layout.layer_bytes)
    plans = [best]
    for order in (nodes, nodes[::-1]):
        for first in range(count + 1):
            plan = make_plan(layout, order, (first, count - first), context_tokens=CONTEXT_TOKENS, links=links)
            if isinstance(plan, Plan) and _shape(plan) not in map(_shape, plans):
                plans.append(plan)
    results = []
    async with LocalRanks(best, folder) as ranks:
        for request, plan in enumerate(plans):
            if request:
                await ranks.rebuild(plan)
            results.append(await run(ranks, plan, request, shares))
            _print(results[-1])
    return results


def _shape(plan: Plan) -> list[tuple[str, int]]:
    return [(stage.ranks[0].node_id, stage.layer_count) for stage in plan.stages]


def _print(result: Measured) -> None:
    stages = ", ".join(
        f"{stage.ranks[0].node_name} {stage.decode_seconds * 1e3:.1f}/{seconds * 1e3:.1f} ms"
        for stage, seconds in zip(result.plan.stages, result.stage_seconds, strict=True)
    )
    print(
        f"  {result.name:<18} chat {result.predicted:6.1f} predicted {result.tokens_per_second:6.1f} measured tok/s   "
        f"stages predicted/measured {stages}",
        flush=True,
    )


def verdicts(results: list[Measured]) -> bool:
    """Print what follows, and whether all of it is as wanted."""
    chosen, best = results[0], max(results, key=lambda result: result.tokens_per_second)
    half = len(chosen.plan.stages) and chosen.plan.layer_count // 2
    even = next(result for result in results if [stage.layer_count for stage in result.plan.stages] == [half, half])
    error = statistics.median(error for result in results for error in result.errors)
    share = chosen.tokens_per_second / best.tokens_per_second
    implied, gained = chosen.predicted / even.predicted, chosen.tokens_per_second / even.tokens_per_second
    lines = [
        (error <= WITHIN, f"stage times: median error {error:.1%} of {sum(len(r.errors) for r in results)} stages"),
        (share >= OF_BEST, f"automatic split ({chosen.name}): {share:.1%} of the best measured ({best.name})"),
        (gained >= implied * (1 - WITHIN), f"over the even split: {gained:.2f} times, the shares imply {implied:.2f}"),
    ]
    for good, words in lines:
        print(f"{'ok ' if good else 'NOT'} {words}")
    return all(good for good, _ in lines)


async def main() -> int:
    """Print the table; 1 if a prediction is worse than wanted. Skips with a reason where shares cannot be had."""
    if reason := refusal(min(SHARES.values())):
        print(f"skipped: {reason}")
        return 0
    async with AsyncExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pomona-truth-")))
        closing = stack.enter_context(ExitStack())
        shares = {}
        for name, share in SHARES.items():
            shares[name] = CpuShare(f"truth-{os.getpid()}-{name}", share)
            closing.callback(shares[name].close)
        return 0 if verdicts(await measure(small_model(scratch / "small"), shares)) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
