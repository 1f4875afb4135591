"""Why a split does not fit, and the smallest change of each kind that would help."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from runtime.planning.budget import stage_bytes
from runtime.planning.problem import CostedNode, SplitProblem
from runtime.planning.values import Change

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.planning.evaluation import Split, StageFigures

_MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class NoFit:
    """A refusal: the split, the node that lacks most, how much, and what helps."""

    split: Split
    node_name: str
    missing_bytes: int
    changes: tuple[Change, ...]

    @property
    def reason(self) -> str:
        """One sentence for a person."""
        helps = " or ".join(change.words for change in self.changes)
        what = f"{self.node_name} lacks {size(self.missing_bytes)} for its part of {self.split.problem.model.name}"
        return f"{what}; {helps or 'choose a smaller model'}."


def explain(split: Split, fits: Callable[[SplitProblem], bool], *, by_hand: bool) -> NoFit:
    """Why ``split`` does not fit. ``fits`` says whether a changed problem would.

    ``by_hand``: whether a boundary may move; else one more node is asked for, for which such a split has no place.
    """
    problem = split.problem
    worst = min(split.short, key=lambda stage: stage.memory.room_bytes)
    missing = -worst.memory.room_bytes
    found = (
        _boundary(split) if by_hand else None,
        _context(problem, fits),
        _reserve(problem, fits, missing),
        None if by_hand else one_more_node(problem, fits),
    )
    return NoFit(split, split.node_of(worst).short_name, missing, tuple(change for change in found if change))


def _boundary(split: Split) -> Change | None:
    """The fewest layers that the stage that is short gives to a neighbour so that all fits.

    One move cannot help two stages that are short: none of them could take.
    """
    if len(split.short) != 1:
        return None
    giver = split.stages.index(split.short[0])
    found = [change for taker in (giver + 1, giver - 1) if (change := _moved(split, giver, taker))]
    return min(found, key=lambda change: change.amount, default=None)


def _moved(split: Split, giver: int, taker: int) -> Change | None:
    """The fewest layers from one stage to the stage before or after it: then the giver fits, and the taker may."""
    if not 0 <= taker < len(split.stages):
        return None
    gives, takes, cuts = split.stages[giver], split.stages[taker], split.problem.model.forbidden_cuts
    backward = taker < giver

    def room(stage: StageFigures, first: int, end: int) -> int:
        problem = split.problem
        return stage_bytes(problem.model, split.node_of(stage), first, end, problem.context_tokens).room_bytes

    def stays(moved: int) -> tuple[int, int]:
        first, end = gives.first_layer, gives.last_layer + 1
        return (first + moved, end) if backward else (first, end - moved)

    low, high = 0, gives.layer_count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if room(gives, *stays(middle)) >= 0 else (middle, high)
    while high < gives.layer_count and stays(high)[not backward] in cuts:
        high += 1
    edge = stays(high)[not backward]
    if room(takes, *((takes.first_layer, edge) if backward else (edge, takes.last_layer + 1))) < 0:
        return None
    counts = [0] * len(split.problem.nodes)
    for stage in split.stages:
        counts[stage.node] = stage.layer_count
    counts[gives.node] -= high
    counts[takes.node] += high
    layers = f"{high} layer" + ("" if high == 1 else "s")
    words = f"move {layers} from {split.node_of(gives).name} to {split.node_of(takes).name}"
    return Change("boundary", high, words, tuple(counts))


def _context(problem: SplitProblem, fits: Callable[[SplitProblem], bool]) -> Change | None:
    """The longest context that fits, in steps that a person would choose."""
    step = 256 if problem.context_tokens > 256 else 1
    low, high = 0, -(-problem.context_tokens // step)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(replace(problem, context_tokens=middle * step)):
            low = middle
        else:
            high = middle
    if not low:
        return None
    return Change("context", low * step, f"shorten the context to {low * step} tokens")


def _reserve(problem: SplitProblem, fits: Callable[[SplitProblem], bool], missing: int) -> Change | None:
    nodes = tuple(replace(node, reserve_bytes=max(node.reserve_bytes - missing, 0)) for node in problem.nodes)
    if not fits(replace(problem, nodes=nodes)):
        return None
    return Change("reserve", missing, f"make the reserve {size(missing)} smaller")


def one_more_node(problem: SplitProblem, fits: Callable[[SplitProblem], bool]) -> Change | None:
    """The least budget of one more node that makes it fit; its speed does not matter for that."""
    link = problem.links[0][0]
    links = (*((*row, link) for row in problem.links), (link,) * (len(problem.nodes) + 1))

    def fits_with(mebibytes: int) -> bool:
        more = CostedNode("one more node", mebibytes * _MEBIBYTE, 0, problem.nodes[0].speed)
        return fits(SplitProblem(problem.model, (*problem.nodes, more), links, problem.context_tokens))

    model = problem.model
    whole = (
        model.embedding_bytes
        + model.head_bytes
        + sum(layer.weight_bytes + layer.cache_bytes(problem.context_tokens) for layer in model.layers)
    )
    low, high = 0, -(-whole // _MEBIBYTE)  # a node of this size holds everything
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits_with(middle) else (middle, high)
    return Change("node", high * _MEBIBYTE, f"add a node with {size(high * _MEBIBYTE)} to spare")


def size(count: int) -> str:
    """``count`` bytes for a person, never rounded down."""
    for unit, name, steps in ((2**30, "GB", 10), (2**20, "MB", 1)):
        if count >= unit:
            return f"{-(-count * steps // unit) / steps:.{1 if steps == 10 else 0}f} {name}"
    return f"{max(1, -(-count // 2**10))} kB"
