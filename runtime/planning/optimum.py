"""The best split for a goal: which nodes, in which order, with which layers.

- *Fastest chat* is exact for up to eight nodes that have room for a layer. Beyond that, the eight nodes of a split that
  fits and the fastest others are searched exactly, and nodes are exchanged with those outside while that gains.
- *Most requests* and *most room left* are exact for up to twelve nodes with room; beyond that, for the twelve with the
  largest budgets.
- *Even* takes the nodes as they come.
- Where some nodes have to take part, all of this is exact for up to eight nodes, those included.

Of equal splits, the one of fewer nodes is taken, and of those the one that leaves most room on its fullest node. For
*most requests* and *most room left* what is then still equal is decided by the speed of one chat.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from runtime.planning.advice import NoFit, explain, one_more_node, size
from runtime.planning.budget import stage_bytes
from runtime.planning.chain import EXACT_NODES, Chain, fastest_chain
from runtime.planning.cost import REQUESTS_PER_STEP
from runtime.planning.evaluation import Split, evaluate, stages_of
from runtime.planning.reach import fewest_nodes, least_slowest, most_room
from runtime.planning.shares import even_split
from runtime.planning.values import Change
from runtime.planning.windows import NEVER, Tables, Windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.planning.problem import SplitProblem
    from runtime.planning.reach import Stages
    from runtime.planning.values import Goal

_SET_NODES = 12
_EXCHANGES = 3


@dataclass(frozen=True, slots=True)
class Unused:
    """A node that the best split leaves out, and why, in words."""

    node: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best split for a goal."""

    split: Split
    unused: tuple[Unused, ...]


def best_split(problem: SplitProblem, goal: Goal, needed: frozenset[int] = frozenset()) -> Optimum | NoFit:
    """The best split of ``problem`` for ``goal``, or why there is none. Every ``needed`` node has a part in it.

    *Even* asks nobody: each node has a part, as long as there are layers. Raises ValueError if more nodes are needed
    than the model has parts.
    """
    if goal == "even":
        return _even(problem)
    tables = Tables(problem)
    if len(needed) > int(tables.cuts.sum()) + 1:
        raise ValueError(f"{len(needed)} nodes cannot share {int(tables.cuts.sum()) + 1} parts")
    usable = _usable(tables, needed)
    stages = fewest_nodes(Windows(tables), usable, len(usable), needed) if usable else None
    if stages is None:
        return _refused(problem, tables, needed)
    with_node: dict[int, int] = {}
    if goal == "chat":
        chain, with_node = _fastest_chat(tables, usable, stages, needed)
        stages = chain.stages
    elif goal == "requests":
        slowest = least_slowest(tables, usable, len(usable), needed)
        assert slowest is not None, "some split fits"
        stages = _roomiest(tables, usable, slowest, needed)
    else:
        stages = _roomiest(tables, usable, NEVER, needed, room_first=True)
    split = evaluate(problem, stages)
    return Optimum(split, _unused(tables, split, goal, with_node))


def given_split(problem: SplitProblem, counts: Sequence[int]) -> tuple[Split, NoFit | None]:
    """A split by hand, layers for each node in the nodes' order: its figures, and why it does not fit if so."""
    stages = stages_of(counts)
    split = evaluate(problem, stages)
    if not split.short:
        return split, None
    refusal = explain(split, lambda changed: _holds(changed, stages), by_hand=True)
    if any(change.kind == "boundary" for change in refusal.changes):
        return split, refusal
    ways = _other_ways(problem)
    first, last = (ways, ()) if ways and ways[0].kind == "goal" else ((), ways)
    return split, replace(refusal, changes=(*first, *refusal.changes, *last))


@lru_cache(maxsize=8)
def _other_ways(problem: SplitProblem) -> tuple[Change, ...]:
    """What helps whatever the split is; kept, because a drag asks the same at every step."""
    if len(problem.nodes) > 1 and fits(problem):
        return (Change("goal", 0, "let Pomona share the layers"),)
    more = one_more_node(problem, fits)
    return (more,) if more else ()


def _holds(problem: SplitProblem, stages: Stages) -> bool:
    """Whether every node has room for its stage; less work than all figures."""
    edges = zip((0, *(end for _, end in stages)), stages, strict=False)
    return all(
        stage_bytes(problem.model, problem.nodes[node], first, end, problem.context_tokens).room_bytes >= 0
        for first, (node, end) in edges
    )


def _usable(tables: Tables, needed: frozenset[int] = frozenset()) -> list[int]:
    """The needed nodes and those with room for some run of layers, the largest of them if they are too many."""
    found = [node for node in range(tables.node_count) if tables.capacity[node] >= tables.smallest_run[node]]
    others = sorted((node for node in found if node not in needed), key=lambda node: -tables.capacity[node])
    most = max(EXACT_NODES if needed else _SET_NODES, len(needed))
    return sorted([*needed, *others[: most - len(needed)]])


def _fastest_chat(
    tables: Tables, usable: list[int], fitting: Stages, needed: frozenset[int]
) -> tuple[Chain, dict[int, int]]:
    windows = Windows(tables)
    if len(usable) <= EXACT_NODES or needed:
        chain, with_node = fastest_chain(windows, usable, len(usable), needed)
        assert chain is not None, "some split fits"
        tied = [node for node in usable if with_node[node] == chain.time]
        return _roomiest_chain(tables, tied, chain, needed), with_node
    best, with_node = Chain(_chat_time(tables, fitting), fitting), dict.fromkeys(usable, NEVER)
    if len(fitting) > EXACT_NODES:
        return best, with_node
    by_speed = sorted(usable, key=lambda node: int(tables.seconds[node, -1]))
    holding = [node for node, _ in fitting]
    chosen = [*holding, *(node for node in by_speed if node not in holding)][:EXACT_NODES]
    candidates = [chosen]
    for _ in range(_EXCHANGES):
        gained = False
        for nodes in candidates:
            chain, found = fastest_chain(windows, sorted(nodes), EXACT_NODES)
            with_node = {node: min(time, found.get(node, NEVER)) for node, time in with_node.items()}
            if chain and (chain.time, len(chain.stages)) < (best.time, len(best.stages)):
                best, chosen, gained = chain, nodes, True
        if not gained and len(candidates) > 1:
            break
        outside = [node for node in usable if node not in chosen]
        candidates = [[other if node == out else node for node in chosen] for out in chosen for other in outside]
    return best, with_node


def _roomiest_chain(tables: Tables, tied: list[int], chain: Chain, needed: frozenset[int]) -> Chain:
    """Of the chains that take the same time over as few of the ``tied`` nodes, the one that leaves most room."""
    count = len(chain.stages)
    rooms = tables.rooms(tied)
    low, high = int(np.searchsorted(rooms, _least_room(tables, chain.stages), "right")), len(rooms)
    probe = low  # first whether there is any other: mostly there is not
    while low < high:
        other, _ = fastest_chain(Windows(tables, int(rooms[probe])), tied, count, needed)
        if other and other.time == chain.time:
            chain = other
            if high == len(rooms):
                most = most_room(tables, tied, count, NEVER, needed=needed)
                assert most is not None, "the chain leaves some"
                high = int(np.searchsorted(rooms, most, "right"))
            low = int(np.searchsorted(rooms, _least_room(tables, chain.stages), "right"))
        else:
            high = probe
        probe = (low + high) // 2
    return chain


def _roomiest(
    tables: Tables, usable: list[int], slowest: int, needed: frozenset[int], *, room_first: bool = False
) -> Stages:
    """Within the limit on stages: as few nodes as can be, then most room, then the fastest chat.

    ``room_first``: most room before fewer nodes.
    """
    room = (most_room(tables, usable, len(usable), slowest, 0, needed) if room_first else 0) or 0
    stages = fewest_nodes(Windows(tables, room, slowest), usable, len(usable), needed)
    assert stages is not None, "the limits were found by a split"
    count = len(stages)
    windows = Windows(tables, most_room(tables, usable, count, slowest, room, needed) or 0, slowest)
    stages = fewest_nodes(windows, usable, count, needed)
    assert stages is not None, "the limits were found by a split"
    nodes = usable if len(usable) <= EXACT_NODES else sorted(node for node, _ in stages)
    chain = fastest_chain(windows, nodes, count, needed)[0] if len(nodes) <= EXACT_NODES else None
    return chain.stages if chain else stages


def _even(problem: SplitProblem) -> Optimum | NoFit:
    """As equal as can be, each boundary at the nearest layer where a stage may begin."""
    layers, count = len(problem.model.layers), len(problem.nodes)
    allowed = [cut for cut in range(layers + 1) if cut not in problem.model.forbidden_cuts or cut in {0, layers}]
    ends, wanted = [], 0
    for part in even_split(layers, count):
        wanted += part
        ends.append(min(allowed, key=lambda cut: abs(cut - wanted)))
    counts = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    split, refusal = given_split(problem, counts)
    if refusal:
        return refusal
    left_out = [node for node, part in enumerate(counts) if not part]
    why = "there are fewer parts of the model than nodes"
    return Optimum(split, tuple(_unused_node(problem, node, why) for node in left_out))


def _refused(problem: SplitProblem, tables: Tables, needed: frozenset[int]) -> NoFit:
    """The split that lacks least on its worst node, and what would make some split fit."""
    largest = sorted(range(tables.node_count), key=lambda node: -tables.capacity[node])
    most = max(EXACT_NODES if needed else _SET_NODES, len(needed))
    nodes = sorted([*needed, *(node for node in largest if node not in needed)][:most])
    room = most_room(tables, nodes, len(nodes), NEVER, needed=needed)
    assert room is not None, "with enough bytes to lack, every split fits"
    stages = fewest_nodes(Windows(tables, room), nodes, len(nodes), needed)
    assert stages is not None, "the room was found by a split"
    refusal = explain(evaluate(problem, stages), lambda changed: fits(changed, needed), by_hand=False)
    if needed and fits(problem):
        others = Change("pins", 0, "let Pomona choose the nodes")
        return replace(refusal, changes=(others, *refusal.changes))
    return refusal


def fits(problem: SplitProblem, needed: frozenset[int] = frozenset()) -> bool:
    """Whether any split at all fits."""
    tables = Tables(problem)
    usable = _usable(tables, needed)
    return bool(usable) and fewest_nodes(Windows(tables), usable, len(usable), needed) is not None


def _unused(tables: Tables, split: Split, goal: Goal, with_node: dict[int, int]) -> tuple[Unused, ...]:
    problem = split.problem
    used = {stage.node for stage in split.stages}
    found = []
    for node in range(tables.node_count):
        if node in used:
            continue
        if (room := tables.capacity[node] - tables.smallest_run[node]) < 0:
            why = f"it lacks {size(-room)} for the smallest part"
        elif goal == "chat":
            why = _slower_chat(split.predicted.chat_tokens_per_second, with_node.get(node, NEVER))
        elif goal == "requests":
            smallest = int(tables.stage_times([node])[0]) / 1e12
            without = split.predicted.requests_tokens_per_second
            most = REQUESTS_PER_STEP / smallest
            why = _rates(without, most, "at most ") if most < without * (1 - 1e-9) else "no more requests with it"
        else:
            why = "no more room with it"
        found.append(_unused_node(problem, node, why))
    return tuple(found)


def _unused_node(problem: SplitProblem, node: int, why: str) -> Unused:
    name = problem.nodes[node].name
    return Unused(node, name, f"{name} not used: {why}")


def _slower_chat(without: float, with_node: int) -> str:
    if with_node >= NEVER:
        return "no split with it was found that fits and is faster"
    rate = 1e12 / with_node
    return "no faster with it" if rate >= without * (1 - 1e-9) else _rates(without, rate)


def _rates(without: float, with_node: float, bound: str = "") -> str:
    digits = next((digits for digits in range(1, 4) if f"{without:.{digits}f}" != f"{with_node:.{digits}f}"), 4)
    return f"{without:.{digits}f} tok/s without it, {bound}{with_node:.{digits}f} with it"


def _least_room(tables: Tables, stages: Stages) -> int:
    return min(stage.memory.room_bytes for stage in evaluate(tables.problem, stages).stages)


def _chat_time(tables: Tables, stages: Stages) -> int:
    seconds = 1 / evaluate(tables.problem, stages).predicted.chat_tokens_per_second
    return round(seconds * 1e12)
