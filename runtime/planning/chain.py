"""The chain of stages with the least time for one token: exact over sets of nodes, their order and their layers.

One chat takes the sum of stages and hops, so a dynamic program over (set of nodes, first node, last node, layers)
finds the optimum: Held and Karp's for the travelling salesman, with layers as a further coordinate. The cost of a run
is a difference of prefix sums and its begin lies in a window, so the best begin for every end is a minimum over a
window, which a sparse table answers for all rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from runtime.planning.windows import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.planning.reach import Stages
    from runtime.planning.windows import Integers, Tables, Windows

EXACT_NODES = 8
"""Up to so many nodes the order is searched exactly."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A split with the time of one token in picoseconds."""

    time: int
    stages: Stages


class _Closing(NamedTuple):
    """How the best chain so far ends; its places are those of :class:`_Search`."""

    time: int
    size: int
    row: int
    """Of the set of all nodes but the last."""
    last: int
    first: int
    """Within that set."""


def fastest_chain(
    windows: Windows, usable: Sequence[int], at_most: int, needed: frozenset[int] = frozenset()
) -> tuple[Chain | None, dict[int, int]]:
    """The fastest chain of at most ``at_most`` of the ``usable`` nodes, the one of fewer nodes where two are equal.

    Every ``needed`` node has a part in it. Also returns, for each node, the time of the fastest chain that has it,
    ``NEVER`` if there is none.
    """
    return _Search(windows, usable, at_most, needed).run()


class _Search:
    """Level ``k`` holds, for each set of ``k`` nodes, times by (last node, layers, first node).

    Nodes are named by their place in ``usable``; within a set, last and first by their place in the sorted set.
    """

    def __init__(self, windows: Windows, usable: Sequence[int], at_most: int, needed: frozenset[int]) -> None:
        self.windows = windows
        self.tables = windows.tables
        self.usable = list(usable)
        self.needed = {place for place, node in enumerate(self.usable) if node in needed}
        self.depth = min(at_most, len(self.usable))
        self.twin = _twins(self.tables, self.usable, needed)
        self.levels: list[Integers] = []
        self.sets: list[list[tuple[int, ...]]] = []
        self.entered: list[tuple[list[int], Integers]] = []
        self.with_node = dict.fromkeys(self.usable, NEVER)

    def run(self) -> tuple[Chain | None, dict[int, int]]:
        best: _Closing | None = None
        for place, node in enumerate(self.usable):
            if self.windows.single[node] and self._may_join(place, ()) and self.needed <= {place}:
                time = int(self.tables.seconds[node, -1]) + self.tables.head_seconds[node]
                self.with_node[node] = time
                if best is None or time < best.time:
                    best = _Closing(time, 1, 0, place, 0)
        for size in range(1, self.depth):
            self._first_level() if size == 1 else self._next_level()
            if not self.sets[-1]:
                break
            self.entered = [self._entered(place) for place in range(len(self.usable))]
            for last in range(len(self.usable)):
                best = self._closed(size, last, best)
        return (Chain(best.time, self._stages(best)) if best else None), self.with_node

    def _may_join(self, place: int, members: Sequence[int]) -> bool:
        """Of nodes that are equal in all respects, those of lower number go first: any other order is the same."""
        return place not in members and (self.twin[place] is None or self.twin[place] in members)

    def _first_level(self) -> None:
        self.sets.append([(place,) for place in range(len(self.usable)) if self._may_join(place, ())])
        level = np.full((len(self.sets[0]), 1, self.tables.layer_count + 1, 1), NEVER, np.int64)
        for row, (place,) in enumerate(self.sets[0]):
            node = self.usable[place]
            reachable = self.tables.cuts.copy()
            reachable[max(self.windows.first[node], 0) + 1 :] = False
            level[row, 0, reachable, 0] = self.tables.seconds[node, reachable]
        self.levels.append(level)

    def _next_level(self) -> None:
        before = self.sets[-1]
        size = len(before[0]) + 1
        found = {
            tuple(sorted((*members, place)))
            for members in before
            for place in range(len(self.usable))
            if self._may_join(place, members)
        }
        sets = [members for members in combinations(range(len(self.usable)), size) if members in found]
        row_of = {members: row for row, members in enumerate(sets)}
        level = np.full((len(sets), size, self.tables.layer_count + 1, size), NEVER, np.int64)
        for place in range(len(self.usable)):
            rows, entered = self.entered[place]
            if not rows:
                continue
            times = self._through(self.usable[place], entered)
            for index, row in enumerate(rows):
                members = tuple(sorted((*before[row], place)))
                at = members.index(place)
                firsts = [position for position in range(size) if position != at]
                level[row_of[members], at][:, firsts] = times[:, index]
        self.sets.append(sets)
        self.levels.append(level)

    def _entered(self, place: int) -> tuple[list[int], Integers]:
        """Times at which a node may begin: rows of sets that it may join, and (layers, row, first node)."""
        sets, level = self.sets[-1], self.levels[-1]
        rows = [row for row, members in enumerate(sets) if self._may_join(place, members)]
        if not rows:
            return rows, level[:0]
        nodes = np.array([[self.usable[member] for member in sets[row]] for row in rows])
        hops = self.tables.hop[nodes, self.usable[place]]
        entered: Integers = (level[rows] + hops[:, :, None, None]).min(axis=1)
        return rows, np.ascontiguousarray(entered.transpose(1, 0, 2))

    def _through(self, node: int, entered: Integers) -> Integers:
        """The best time at every end of a run on ``node``, for all rows: a minimum over each end's window."""
        t = self.tables
        relative = entered - t.seconds[node][:, None, None]
        powers, width = [relative], 1
        while 2 * width <= t.layer_count:
            previous = powers[-1]
            grown = previous.copy()
            np.minimum(previous[:-width], previous[width:], out=grown[:-width])
            powers.append(grown)
            width *= 2
        table = np.stack(powers)
        ends = np.arange(1, t.layer_count + 1)
        begins = np.maximum(self.windows.begin[node][1:], 1)
        ends = ends[fits := (begins < ends) & t.cuts[1:]]
        begins = begins[fits]
        power = np.log2(ends - begins).astype(np.int64)
        times = np.full_like(entered, NEVER)
        times[ends] = np.minimum(table[power, begins], table[power, ends - (1 << power)])
        times[ends] += t.seconds[node][ends][:, None, None]
        return np.minimum(times, NEVER)

    def _closed(self, size: int, place: int, best: _Closing | None) -> _Closing | None:
        """Try ``place`` as the last stage after every set of ``size`` nodes."""
        node, t = self.usable[place], self.tables
        rows, entered = self.entered[place]
        begin = self.windows.last[node]
        if self.needed:
            kept = [at for at, row in enumerate(rows) if self.needed <= {place, *self.sets[-1][row]}]
            rows, entered = [rows[at] for at in kept], entered[:, kept]
        if not rows or begin >= t.layer_count:
            return best
        firsts = np.array([[self.usable[member] for member in self.sets[-1][row]] for row in rows])
        rest = t.seconds[node, -1] - t.seconds[node][begin:-1] + t.head_seconds[node]
        times = (entered[begin:-1] + rest[:, None, None]).min(axis=0) + t.way_back[node, firsts]
        quickest = times.min(axis=1)
        for row, time in zip(rows, quickest.tolist(), strict=True):
            for member in (place, *self.sets[-1][row]):
                used = self.usable[member]
                self.with_node[used] = min(self.with_node[used], time)
        index = int(times.argmin())
        row, first = divmod(index, size)
        time = int(times[row, first])
        if time < NEVER and (best is None or time < best.time):
            return _Closing(time, size + 1, rows[row], place, first)
        return best

    def _stages(self, best: _Closing) -> Stages:
        """Walk back over the levels: some step explains each time exactly, since times are whole numbers."""
        time, size, row, place, first = best
        t, node = self.tables, self.usable[place]
        stages = [(node, t.layer_count)]
        if size == 1:
            return tuple(stages)
        members = self.sets[size - 2][row]
        first_place = members[first]
        wanted = time - int(t.way_back[node, self.usable[first_place]]) - t.head_seconds[node]
        begin, end = self.windows.last[node], t.layer_count
        for level in range(size - 2, -1, -1):
            members = self.sets[level][row]
            place, cut, wanted = self._step(level, row, first_place, node, (begin, end, wanted))
            node = self.usable[place]
            stages.append((node, cut))
            if level:
                row = self.sets[level - 1].index(tuple(member for member in members if member != place))
                begin, end = max(int(self.windows.begin[node][cut]), 1), cut
        return tuple(reversed(stages))

    def _step(
        self, level: int, row: int, first_place: int, node: int, run: tuple[int, int, int]
    ) -> tuple[int, int, int]:
        """The stage before the run that ends at ``end`` and begins at ``begin`` or later: its node, end and time."""
        begin, end, wanted = run
        t, members = self.tables, self.sets[level][row]
        first = members.index(first_place)
        for at, member in enumerate(members):
            before = self.levels[level][row, at, begin:end, first]
            hop = int(t.hop[self.usable[member], node])
            spent = before + hop + t.seconds[node, end] - t.seconds[node][begin:end]
            if len(found := np.flatnonzero((spent == wanted) & (before < NEVER))):
                cut = begin + int(found[0])
                return member, cut, int(before[found[0]])
        raise AssertionError("a time without a step that explains it")


def _twins(tables: Tables, usable: Sequence[int], needed: frozenset[int]) -> list[int | None]:
    """For each place in ``usable``, the next lower one whose node is the same in speed, memory and links."""
    found: list[int | None] = []
    for place, node in enumerate(usable):
        alike = [other for other in range(place) if (usable[other] in needed) == (node in needed)]
        twin = next((other for other in reversed(alike) if _same(tables, node, usable[other])), None)
        found.append(twin)
    return found


def _same(tables: Tables, one: int, other: int) -> bool:
    there, here = tables.problem.nodes[one], tables.problem.nodes[other]
    if (tables.capacity[one], there.speed, there.ranks) != (tables.capacity[other], here.speed, here.ranks):
        return False
    swapped = list(range(tables.node_count))
    swapped[one], swapped[other] = other, one
    return all(np.array_equal(ways, ways[np.ix_(swapped, swapped)]) for ways in (tables.hop, tables.way_back))
