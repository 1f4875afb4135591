"""Which runs of layers a node may take under limits: the ground on which both searches stand.

Times are whole picoseconds here, so that sums are exact and a tie is a tie. Prefix sums give the cost of any run of
layers as one difference, and because costs only grow with a run, the runs that end at one layer and stay within the
limits begin anywhere from some layer on: a window. Where later layers work on the caches of earlier ones, a run also
keeps copies of those that lie before it. That is no difference any more, but still grows with the run, because a copy
is never more than what the run would hold with its source.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from runtime.planning.cost import TOKEN_BYTES, hop_seconds, layer_decode_seconds, layer_step_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from runtime.planning.cost import LayerCost, ModelCost, NodeSpeed
    from runtime.planning.problem import SplitProblem

    Integers = NDArray[np.int64]

NEVER = 1 << 60
"""Larger than any time or number of bytes, and twice it is still an int64."""


def picoseconds(seconds: float) -> int:
    """Rounded, and at most a hundred seconds: a layer or a hop that is slower is as good as never."""
    return round(min(seconds, 1e2) * 1e12)


class Tables:
    """A problem as prefix sums: ``bytes[node][k]`` is what layers ``[0, k)`` need there, their cache included."""

    def __init__(self, problem: SplitProblem) -> None:
        model, context = problem.model, problem.context_tokens
        self.problem = problem
        self.node_count = len(problem.nodes)
        self.layer_count = len(model.layers)
        self.models = [problem.model_on(node) for node in range(self.node_count)]
        need = {
            node.ranks: [layer.weight_bytes + layer.cache_bytes(context) for layer in shared.layers]
            for node, shared in zip(problem.nodes, self.models, strict=True)
        }
        self.bytes: list[Integers] = [
            np.concatenate(([0], np.cumsum(need[node.ranks]))).astype(np.int64) for node in problem.nodes
        ]
        self.copied: list[Integers] | None = [self._copied(shared) for shared in self.models] if model.copies else None
        """By node, begin and end of a run: the copies of earlier caches that it keeps beside ``bytes``."""
        self.embedding = model.embedding_bytes
        self.head = [shared.head_bytes for shared in self.models]
        self.head_alone = [
            shared.head_bytes + (model.embedding_bytes if model.tied_embedding else 0) for shared in self.models
        ]
        """The last stage's head, where the first stage is another."""
        self.capacity: list[int] = [node.budget_bytes - node.reserve_bytes for node in problem.nodes]
        self.head_seconds = [
            picoseconds(shared.head_active_bytes / node.speed.bytes_per_second)
            for shared, node in zip(self.models, problem.nodes, strict=True)
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
        """Picoseconds of one token through layers ``[0, k)`` by node and k, without the head.

        Whether a split fits needs none of it.
        """
        return self._times(layer_decode_seconds)

    @cached_property
    def step_seconds(self) -> Integers:
        """The same for a step of many requests."""
        return self._times(layer_step_seconds)

    @cached_property
    def smallest_run(self) -> list[int]:
        """For each node, the least bytes that it needs to be of any use."""
        return [int(runs.min()) for runs in self._byte_runs]

    def rooms(self, nodes: Iterable[int]) -> Integers:
        """All values that the least room of a split can take, ascending."""
        return np.sort(np.concatenate([self.capacity[node] - self._byte_runs[node] for node in nodes]))

    def stage_times(self, nodes: Iterable[int]) -> Integers:
        """All values that the slowest stage of a split can take, ascending."""
        heads = self.head_seconds
        return np.unique(
            np.concatenate([self._runs(self.step_seconds[node], 0, heads[node], heads[node]) for node in nodes])
        )

    def _times(self, layer_seconds: Callable[[LayerCost, NodeSpeed, int], float]) -> Integers:
        context = self.problem.context_tokens
        seconds = np.zeros((self.node_count, self.layer_count + 1), np.int64)
        for index, node in enumerate(self.problem.nodes):
            layers = self.models[index].layers
            seconds[index, 1:] = np.cumsum([picoseconds(layer_seconds(layer, node.speed, context)) for layer in layers])
        return seconds

    def need(self, node: int) -> Integers:
        """Bytes of the run from b to e at ``[b, e]``, where both are inside the model or e is its end."""
        prefix = self.bytes[node]
        runs: Integers = prefix[None, :] - prefix[:, None]
        return runs if self.copied is None else runs + self.copied[node]

    def _copied(self, model: ModelCost) -> Integers:
        """Of every run: the sum of the copies that it keeps."""
        places = np.arange(self.layer_count + 1)
        copied = np.zeros((len(places), len(places)), np.int64)
        for copy in model.copies:
            users = np.zeros(self.layer_count, np.bool_)
            users[list(copy.users)] = True
            before = np.concatenate(([0], np.cumsum(users)))
            keeps = (before[None, :] > before[:, None]) & (places[:, None] > copy.source)
            copied += keeps * copy.kept.cache_bytes(self.problem.context_tokens)
        return copied

    @cached_property
    def _byte_runs(self) -> list[Integers]:
        made: dict[int, Integers] = {}
        for index, node in enumerate(self.problem.nodes):
            if node.ranks not in made:
                copied = None if self.copied is None else self.copied[index]
                made[node.ranks] = self._runs(
                    self.bytes[index], self.embedding, self.head[index], self.head_alone[index], copied
                )
        return [made[node.ranks] for node in self.problem.nodes]

    def _runs(
        self, prefix: Integers, first: int, head: int, head_alone: int, copied: Integers | None = None
    ) -> Integers:
        """The cost of every run that the cuts allow, with what its place adds."""
        inner, whole = prefix[self.cuts], prefix[-1]
        middle, last = inner[:, None] - inner[None, :], whole - inner + head_alone
        if copied is not None:
            middle = middle + copied[np.ix_(self.cuts, self.cuts)].T
            last = last + copied[self.cuts, -1]
        middle = middle[np.tril_indices(len(inner), -1)]
        return np.concatenate((middle, inner + first, last, [whole + first + head]))


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
        return [
            int(t.bytes[node][-1]) + t.embedding + t.head[node] + self.room <= t.capacity[node]
            and (not self.is_timed or int(t.step_seconds[node, -1]) + t.head_seconds[node] <= self.slowest)
            for node in range(t.node_count)
        ]

    @cached_property
    def first(self) -> list[int]:
        """The most layers with which a node can begin, below 1 if none. Cuts are not looked at."""
        t = self.tables
        most = [
            np.searchsorted(need, capacity - self.room - t.embedding, "right")
            for need, capacity in zip(t.bytes, t.capacity, strict=True)
        ]
        if self.is_timed:
            by_time = (np.searchsorted(seconds, self.slowest, "right") for seconds in t.step_seconds)
            most = [min(pair) for pair in zip(most, by_time, strict=True)]
        return [int(end) - 1 for end in most]

    @cached_property
    def last(self) -> list[int]:
        """The first layer from which a node can take all the rest and the head; too high if none."""
        t = self.tables
        if t.copied is None:
            begin = [
                np.searchsorted(need, need[-1] + head - capacity + self.room)
                for need, head, capacity in zip(t.bytes, t.head_alone, t.capacity, strict=True)
            ]
        else:
            begin = [(over[:, -1] > -head).sum() for over, head in zip(self._over, t.head_alone, strict=True)]
        if self.is_timed:
            over = t.step_seconds[:, -1] + np.array(t.head_seconds) - self.slowest
            by_time = (np.searchsorted(*pair) for pair in zip(t.step_seconds, over, strict=True))
            begin = [max(pair) for pair in zip(begin, by_time, strict=True)]
        return [max(int(layer), 1) for layer in begin]

    @cached_property
    def begin(self) -> list[Integers]:
        """For each node and end, the first layer from which a run in the middle can begin."""
        t = self.tables
        if t.copied is None:
            pairs = zip(t.bytes, t.capacity, strict=True)
            begin = [np.searchsorted(need, need - capacity + self.room) for need, capacity in pairs]
        else:
            begin = [(over > 0).sum(axis=0) for over in self._over]
        if self.is_timed:
            by_time = (np.searchsorted(seconds, seconds - self.slowest) for seconds in t.step_seconds)
            begin = [np.maximum(*pair) for pair in zip(begin, by_time, strict=True)]
        return begin

    @cached_property
    def reach(self) -> list[list[int]]:
        """For each node and begin, the furthest cut that a run in the middle can reach; the begin itself if none."""
        t = self.tables
        inner, starts = np.flatnonzero(t.cuts), np.arange(t.layer_count + 1)
        before = np.concatenate(([0], inner))[np.searchsorted(inner, starts, "right")]
        if t.copied is None:
            pairs = zip(t.bytes, t.capacity, strict=True)
            ends = [np.searchsorted(need, need + capacity - self.room, "right") - 1 for need, capacity in pairs]
        else:
            ends = [(over <= 0).sum(axis=1) - 1 for over in self._over]
        if self.is_timed:
            by_time = (np.searchsorted(seconds, seconds + self.slowest, "right") - 1 for seconds in t.step_seconds)
            ends = [np.minimum(*pair) for pair in zip(ends, by_time, strict=True)]
        return [np.maximum(before[np.maximum(end, 0)], starts).tolist() for end in ends]

    @cached_property
    def _over(self) -> list[Integers]:
        """For each node, by begin and end: by how many bytes a run in the middle exceeds the limit."""
        t = self.tables
        return [t.need(node) - (t.capacity[node] - self.room) for node in range(t.node_count)]
