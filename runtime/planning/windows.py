"""Which runs of layers a node may take under limits: the ground on which both searches stand.

Times are whole picoseconds here, so that sums are exact and a tie is a tie. Prefix sums give the cost of any run of
layers as one difference, and because costs only grow with a run, the runs that end at one layer and stay within the
limits begin anywhere from some layer on: a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from runtime.planning.cost import TOKEN_BYTES, hop_seconds, layer_decode_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from runtime.planning.problem import SplitProblem

    Integers = NDArray[np.int64]

NEVER = 1 << 60
"""Larger than any time or number of bytes, and twice it is still an int64."""


def picoseconds(seconds: float) -> int:
    """Rounded, and at most a hundred seconds: a layer or a hop that is slower is as good as never."""
    return round(min(seconds, 1e2) * 1e12)


class Tables:
    """A problem as prefix sums: ``bytes[k]`` is what layers ``[0, k)`` need, their cache included."""

    def __init__(self, problem: SplitProblem) -> None:
        model, context = problem.model, problem.context_tokens
        self.problem = problem
        self.node_count = len(problem.nodes)
        self.layer_count = len(model.layers)
        need = [layer.weight_bytes + layer.cache_bytes(context) for layer in model.layers]
        self.bytes: Integers = np.concatenate(([0], np.cumsum(need))).astype(np.int64)
        self.embedding = model.embedding_bytes
        self.head = model.head_bytes
        self.head_alone = model.head_bytes + (model.embedding_bytes if model.tied_embedding else 0)
        """The last stage's head, where the first stage is another."""
        self.capacity: list[int] = [node.budget_bytes - node.reserve_bytes for node in problem.nodes]
        self.head_seconds = [
            picoseconds(model.head_active_bytes / node.speed.bytes_per_second) for node in problem.nodes
        ]
        ways = [
            [(picoseconds(hop_seconds(link, size)) if a != b else 0) for b, link in enumerate(row)]
            for size in (model.hidden_bytes, TOKEN_BYTES)
            for a, row in enumerate(problem.links)
        ]
        self.hop: Integers = np.array(ways[: self.node_count], np.int64)
        self.way_back: Integers = np.array(ways[self.node_count :], np.int64)
        self.cuts: NDArray[np.bool_] = np.ones(self.layer_count + 1, np.bool_)
        """Where a stage may begin or end inside the model."""
        self.cuts[[0, self.layer_count, *(cut for cut in model.forbidden_cuts if 0 <= cut <= self.layer_count)]] = False

    @cached_property
    def seconds(self) -> Integers:
        """Picoseconds of layers ``[0, k)`` by node and k, without the head. Whether a split fits needs none of it."""
        context, layers = self.problem.context_tokens, self.problem.model.layers
        seconds = np.zeros((self.node_count, self.layer_count + 1), np.int64)
        for index, node in enumerate(self.problem.nodes):
            times = [picoseconds(layer_decode_seconds(layer, node.speed, context)) for layer in layers]
            seconds[index, 1:] = np.cumsum(times)
        return seconds

    @cached_property
    def smallest_run(self) -> int:
        """The least bytes that a node needs to be of any use."""
        return int(self._runs(self.bytes, self.embedding, self.head, self.head_alone).min())

    def rooms(self, nodes: Iterable[int]) -> Integers:
        """All values that the least room of a split can take, ascending."""
        runs = self._runs(self.bytes, self.embedding, self.head, self.head_alone)
        return np.sort(np.concatenate([self.capacity[node] - runs for node in nodes]))

    def stage_times(self, nodes: Iterable[int]) -> Integers:
        """All values that the slowest stage of a split can take, ascending."""
        heads = self.head_seconds
        return np.unique(
            np.concatenate([self._runs(self.seconds[node], 0, heads[node], heads[node]) for node in nodes])
        )

    def _runs(self, prefix: Integers, first: int, head: int, head_alone: int) -> Integers:
        """The cost of every run that the cuts allow, with what its place adds."""
        inner, whole = prefix[self.cuts], prefix[-1]
        middle = (inner[:, None] - inner[None, :])[np.tril_indices(len(inner), -1)]
        return np.concatenate((middle, inner + first, whole - inner + head_alone, [whole + first + head]))


@dataclass(frozen=True)
class Windows:
    """The runs that fit: at least ``room`` bytes left on each node used, at most ``slowest`` picoseconds a stage."""

    tables: Tables
    room: int = 0
    slowest: int = NEVER

    @property
    def is_timed(self) -> bool:
        return self.slowest < NEVER

    @cached_property
    def single(self) -> list[bool]:
        """Whether a node can take the whole model."""
        t = self.tables
        need = int(t.bytes[-1]) + t.embedding + t.head + self.room
        return [
            need <= t.capacity[node]
            and (not self.is_timed or int(t.seconds[node, -1]) + t.head_seconds[node] <= self.slowest)
            for node in range(t.node_count)
        ]

    @cached_property
    def first(self) -> list[int]:
        """The most layers with which a node can begin, below 1 if none. Cuts are not looked at."""
        t = self.tables
        most = np.searchsorted(t.bytes, np.array(t.capacity) - self.room - t.embedding, "right")
        if self.is_timed:
            most = np.minimum(most, [np.searchsorted(seconds, self.slowest, "right") for seconds in t.seconds])
        found: list[int] = (most - 1).tolist()
        return found

    @cached_property
    def last(self) -> list[int]:
        """The first layer from which a node can take all the rest and the head; too high if none."""
        t = self.tables
        begin = np.searchsorted(t.bytes, t.bytes[-1] + t.head_alone - np.array(t.capacity) + self.room)
        if self.is_timed:
            over = t.seconds[:, -1] + np.array(t.head_seconds) - self.slowest
            begin = np.maximum(begin, [np.searchsorted(*pair) for pair in zip(t.seconds, over, strict=True)])
        found: list[int] = np.maximum(begin, 1).tolist()
        return found

    @cached_property
    def begin(self) -> list[Integers]:
        """For each node and end, the first layer from which a run in the middle can begin."""
        t = self.tables
        begin = [np.searchsorted(t.bytes, t.bytes - capacity + self.room) for capacity in t.capacity]
        if self.is_timed:
            by_time = (np.searchsorted(seconds, seconds - self.slowest) for seconds in t.seconds)
            begin = [np.maximum(*pair) for pair in zip(begin, by_time, strict=True)]
        return begin

    @cached_property
    def reach(self) -> list[list[int]]:
        """For each node and begin, the furthest cut that a run in the middle can reach; the begin itself if none."""
        t = self.tables
        inner, starts = np.flatnonzero(t.cuts), np.arange(t.layer_count + 1)
        before = np.concatenate(([0], inner))[np.searchsorted(inner, starts, "right")]
        ends = [np.searchsorted(t.bytes, t.bytes + capacity - self.room, "right") - 1 for capacity in t.capacity]
        if self.is_timed:
            by_time = (np.searchsorted(seconds, seconds + self.slowest, "right") - 1 for seconds in t.seconds)
            ends = [np.minimum(*pair) for pair in zip(ends, by_time, strict=True)]
        return [np.maximum(before[np.maximum(end, 0)], starts).tolist() for end in ends]
