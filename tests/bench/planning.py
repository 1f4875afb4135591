"""How long planning takes: ``python -m tests.bench.planning``. The window replans with every step of a drag."""

from __future__ import annotations

import random
import time
from functools import partial
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING

from runtime.models.cache_layout import LayerCache
from runtime.models.layer_figures import ModelFigures
from runtime.models.layout import ModelLayout
from runtime.planning.cost import LayerCost, LinkSpeed, ModelCost, NodeSpeed
from runtime.planning.optimum import best_split, given_split
from runtime.planning.plan import Link, PlanNode, make_plan
from runtime.planning.problem import CostedNode, SplitProblem
from runtime.planning.shares import even_split

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.planning.values import Goal

GIB = 2**30
ROUNDS = 7
GOALS: tuple[Goal, ...] = ("chat", "requests", "room")
DRAG_MILLISECONDS, FRAME_MILLISECONDS, SEARCH_MILLISECONDS = 5, 16, 200


def problem_of(node_count: int, layer_count: int, memory: float, seed: int = 1) -> SplitProblem:
    """Uneven layers and nodes, mixed links; ``memory`` is all budgets over all that is to be held."""
    rng = random.Random(seed)
    layers = tuple(LayerCost(rng.randint(8, 12) * GIB // 10, GIB // 2, 4096) for _ in range(layer_count))
    nodes = tuple(
        CostedNode(
            f"node {index}",
            int(layer_count * GIB * memory / node_count * rng.uniform(0.3, 1.7)) + GIB,
            GIB,
            NodeSpeed(rng.uniform(50, 800) * 1e9, 1e13, 2e-5),
        )
        for index in range(node_count)
    )
    links = tuple(tuple(LinkSpeed(rng.choice([5e-5, 3e-4, 2e-3]), 1e9) for _ in nodes) for _ in nodes)
    return SplitProblem(ModelCost("model", layers, GIB, GIB, False, 8192), nodes, links, 8192)


def report(what: str, limit_milliseconds: float, work: Callable[[], object]) -> None:
    """One line of the table, in wall-clock and CPU time."""
    times, cpu = [], []
    for _ in range(ROUNDS):
        started, started_cpu = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - started) * 1000)
        cpu.append((time.process_time() - started_cpu) * 1000)
    print(f"{what:<44}{median(times):>8.1f} ms  {median(cpu):>8.1f} ms CPU   of {limit_milliseconds:g}")


def layout_of(layer_count: int) -> ModelLayout:
    """A model of equal layers, all of which can be shared."""
    layer_bytes = (GIB,) * layer_count
    return ModelLayout(
        name="model",
        model_type="llama",
        layer_bytes=layer_bytes,
        embedding_bytes=GIB,
        head_bytes=GIB,
        tied_embedding=False,
        attention_heads=64,
        key_value_heads=8,
        context_tokens=131072,
        layer_divided_bytes=layer_bytes,
        head_divided_bytes=0,
        tensor_refusals=("",) * 7,
        layer_active_bytes=layer_bytes,
        figures=ModelFigures((LayerCache("full", 4096),) * layer_count, 8192, 0.5625, "4-bit"),
    )


def drag_question(memory: float) -> tuple[ModelLayout, list[PlanNode], tuple[int, ...]]:
    """What the window asks at every step of a drag: 5 nodes, 100 layers."""
    nodes = [PlanNode(str(index), f"node {index}", int(100 * GIB * memory / 5)) for index in range(5)]
    return layout_of(100), nodes, even_split(100, 5)


def paired_nodes(memory: float) -> tuple[list[PlanNode], list[Link]]:
    """Four kinds of Macs, two of each, whose links are fast: as many groups to think of as there can be."""
    speeds = [NodeSpeed(rate * 1e9, 1e13, 2e-5) for rate in (800, 400, 200, 100)]
    budget = int(128 * GIB * memory / 8)
    nodes = [PlanNode(str(index), f"node {index}", budget, speeds[index // 2]) for index in range(8)]
    pairs = combinations([node.node_id for node in nodes], 2)
    return nodes, [Link(*pair, LinkSpeed(2e-5, 5e9)) for pair in pairs]


def main() -> None:
    """Print the table."""
    for memory, name in ((2.0, "fits"), (1.06, "a boundary to move"), (0.7, "too little")):
        report(
            f"make_plan in a drag, 5 x 100, {name}",
            DRAG_MILLISECONDS if memory > 1 else FRAME_MILLISECONDS,
            partial(make_plan, *drag_question(memory)),
        )
    drag = problem_of(5, 100, 2.0)
    split = even_split(100, 5)

    def step() -> None:
        figures, _ = given_split(drag, split)
        figures.ttft_seconds(1024)
        figures.ttft_seconds(16384)

    report("a drag step, 5 nodes x 100 layers", DRAG_MILLISECONDS, step)
    for memory, name in ((2.0, "room to spare"), (1.25, "tight"), (0.8, "too little")):
        search = problem_of(8, 128, memory)
        for goal in GOALS:
            report(f"{goal}, 8 nodes x 128 layers, {name}", SEARCH_MILLISECONDS, partial(best_split, search, goal))
    nodes, links = paired_nodes(1.6)
    for goal in ("chat", "requests"):
        clicked = partial(make_plan, layout_of(128), nodes, goal=goal, links=links)
        report(f"make_plan for {goal}, 8 x 128, with groups", SEARCH_MILLISECONDS, clicked)


if __name__ == "__main__":
    main()
