"""Every split there is, with its costs in whole picoseconds, and problems small enough to try them all."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations

from hypothesis import strategies as st

from runtime.planning.cost import CopiedCache, LayerCost, LinkSpeed, ModelCost, NodeSpeed
from runtime.planning.problem import CostedNode, SplitProblem

CONTEXT_TOKENS = 100


@st.composite
def problems(draw, max_nodes=4, max_layers=12) -> SplitProblem:
    """Uneven layers, tight memory, mixed links. Speeds are such that every time is a whole number of picoseconds."""
    size = st.integers(1, 40) if draw(st.booleans()) else st.sampled_from([10, 20])
    layers = tuple(
        LayerCost(
            weight_bytes=(weight := draw(size)) * 1000,
            active_bytes=draw(st.integers(1, weight)) * 1000 if draw(st.booleans()) else weight * 1000,
            kv_bytes_per_token=draw(st.sampled_from([0, 10, 100])),
            window_tokens=draw(st.sampled_from([None, 20])),
            state_bytes=draw(st.sampled_from([0, 500])),
        )
        for _ in range(draw(st.integers(4, max_layers)))
    )
    node_count = draw(st.integers(2, max_nodes))
    cuts = st.sets(st.integers(1, len(layers) - 1), max_size=len(layers) // 2)
    model = ModelCost(
        "tiny",
        layers,
        embedding_bytes=draw(st.integers(0, 60)) * 1000,
        head_bytes=draw(st.integers(0, 60)) * 1000,
        tied_embedding=draw(st.booleans()),
        hidden_bytes=1000,
        forbidden_cuts=frozenset(draw(cuts)) if draw(st.booleans()) else frozenset(),
        copies=tuple(draw(copied_caches(layers))) if draw(st.booleans()) else (),
    )
    total = sum(layer.weight_bytes for layer in layers) // 1000 + 120
    budgets = st.integers(0, 2 * total // node_count + 10)
    alike = draw(st.booleans())
    kinds = [
        (
            (total // node_count + 40 if alike else draw(budgets)) * 1000,
            draw(st.sampled_from([0, 5000])),
            NodeSpeed(draw(st.sampled_from([1e9, 2e9, 5e9])), 1e12, draw(st.sampled_from([0.0, 1e-6]))),
        )
        for _ in range(2 if alike else node_count)
    ]
    nodes = tuple(
        CostedNode(f"Mac {index}", *(draw(st.sampled_from(kinds)) if alike else kinds[index]))
        for index in range(node_count)
    )
    rtts = st.sampled_from([0.0, 2e-5, 2e-4]) if draw(st.booleans()) else st.just(2e-5)
    links = tuple(tuple(LinkSpeed(draw(rtts), 1e9) for _ in nodes) for _ in nodes)
    return SplitProblem(model, nodes, links, CONTEXT_TOKENS)


@st.composite
def copied_caches(draw, layers) -> list[CopiedCache]:
    """Some layers work on the caches of earlier ones, one stage's copy being as large as the cache at most."""
    copies = []
    for source in draw(st.sets(st.integers(0, len(layers) - 2), max_size=2)):
        users = draw(st.sets(st.integers(source + 1, len(layers) - 1), min_size=1))
        its = layers[source]
        kept = LayerCost(0, 0, its.kv_bytes_per_token, its.window_tokens, draw(st.sampled_from([0, its.state_bytes])))
        copies.append(CopiedCache(source, frozenset(users), kept))
    return copies


def cache_bytes(layer: LayerCost, tokens: int) -> int:
    """What a layer's cache holds and reads."""
    return layer.state_bytes + layer.kv_bytes_per_token * min(tokens, layer.window_tokens or tokens)


def all_splits(problem: SplitProblem):
    """Chat picoseconds, slowest picoseconds, nodes, least room, order and ends of every split, fitting or not."""
    model, cuts = problem.model, problem.model.forbidden_cuts
    count = len(model.layers)
    cache = [cache_bytes(layer, problem.context_tokens) for layer in model.layers]
    held = [layer.weight_bytes + kv for layer, kv in zip(model.layers, cache, strict=True)]
    read = [layer.active_bytes + kv for layer, kv in zip(model.layers, cache, strict=True)]
    free = [cut for cut in range(1, count) if cut not in cuts]
    last_reads = model.head_bytes + model.embedding_bytes * model.tied_embedding

    def stage(node: int, first: int, end: int) -> tuple[int, int]:
        there = problem.nodes[node]
        time = sum(read[first:end]) + (last_reads if end == count else 0)
        time = time * 1000 // round(there.speed.bytes_per_second / 1e9)
        time += (end - first) * round(there.speed.layer_overhead_seconds * 1e12)
        embedding = first == 0 or (end == count and model.tied_embedding)
        need = sum(held[first:end]) + embedding * model.embedding_bytes + (end == count) * model.head_bytes
        for copy in model.copies:
            if copy.source < first and copy.users & set(range(first, end)):
                need += cache_bytes(copy.kept, problem.context_tokens)
        return time, there.budget_bytes - there.reserve_bytes - need

    stages = {
        (node, first, end): stage(node, first, end)
        for node in range(len(problem.nodes))
        for first, end in combinations([0, *free, count], 2)
    }
    for size in range(1, len(problem.nodes) + 1):
        for order in permutations(range(len(problem.nodes)), size):
            hops = [_half(problem, a, b) + model.hidden_bytes * 1000 for a, b in pairwise(order)]
            if size > 1:
                hops.append(_half(problem, order[-1], order[0]) + 4000)
            for inner in combinations(free, size - 1):
                edges = (0, *inner, count)
                parts = [stages[node, *run] for node, run in zip(order, pairwise(edges), strict=True)]
                times, rooms = zip(*parts, strict=True)
                yield sum(times) + sum(hops), max(times), size, min(rooms), order, edges[1:]


def _half(problem: SplitProblem, one: int, other: int) -> int:
    return round(problem.links[one][other].rtt_seconds * 1e12) // 2
