"""Can these limits be kept at all, and with how few nodes?

Filling each node as far as the limits allow is never worse than stopping earlier, so for every set of nodes one number
is enough: the furthest layer that the set can reach, in any order. Exact, by dynamic programming over sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.planning.chain import fastest_chain
from runtime.planning.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runtime.planning.windows import Integers, Tables

Stages = tuple[tuple[int, int], ...]
"""Node and end layer of every stage, in model order."""


def fewest_nodes(
    windows: Windows, usable: Sequence[int], at_most: int, needed: frozenset[int] = frozenset()
) -> Stages | None:
    """A split within the limits over as few of the ``usable`` nodes as can be; None if ``at_most`` are too few.

    Takes 2^n·n steps for n usable nodes. Where some nodes are ``needed``, a furthest layer tells too little: a node
    may have to stop early to leave them one. Then the search for chains answers.
    """
    if needed:
        sizes = range(len(needed), at_most + 1)
        found = (fastest_chain(windows, usable, size, needed)[0] for size in sizes)
        return next((chain.stages for chain in found if chain), None)
    for node in usable:
        if windows.single[node]:
            return ((node, windows.tables.layer_count),)
    reached, came_from = _reached(windows, usable)
    best: tuple[int, int, int] | None = None
    for others, layer in enumerate(reached):
        count = others.bit_count() + 1
        if layer < 1 or count > at_most or (best and count >= best[0]):
            continue
        for bit, node in enumerate(usable):
            if not others >> bit & 1 and windows.last[node] <= layer:
                best = (count, others, node)
                break
    if best is None:
        return None
    _, others, last = best
    stages = [(last, windows.tables.layer_count)]
    while others:
        bit = came_from[others]
        stages.append((usable[bit], reached[others]))
        others ^= 1 << bit
    return tuple(reversed(stages))


def _reached(windows: Windows, usable: Sequence[int]) -> tuple[list[int], list[int]]:
    """The furthest cut before the end that each set of nodes reaches (0: none), and who took the last step."""
    inner = [0, *(int(cut) for cut in windows.tables.cuts.nonzero()[0])]
    begun = [max((cut for cut in inner if cut <= windows.first[node]), default=0) for node in usable]
    reach = [windows.reach[node] for node in usable]
    reached, came_from = [0] * (1 << len(usable)), [0] * (1 << len(usable))
    for members in range(1, 1 << len(usable)):
        best, step = -1, 0
        rest = members
        while rest:
            low = rest & -rest
            rest ^= low
            bit = low.bit_length() - 1
            before = reached[members ^ low]
            after = reach[bit][before] if before else (begun[bit] if members == low else 0)
            if after > best:
                best, step = after, bit
        reached[members], came_from[members] = best, step
    return reached, came_from


def least_slowest(
    tables: Tables, usable: Sequence[int], at_most: int, needed: frozenset[int] = frozenset()
) -> int | None:
    """The smallest time of the slowest stage of a split that fits; None if there is no such split."""
    times = tables.stage_times(usable)
    found = _first(times, lambda time: fewest_nodes(Windows(tables, 0, time), usable, at_most, needed) is not None)
    return None if found is None else int(times[found])


def most_room(
    tables: Tables,
    usable: Sequence[int],
    at_most: int,
    slowest: int,
    least: int | None = None,
    needed: frozenset[int] = frozenset(),
) -> int | None:
    """The most bytes that a split can leave on every node that it uses; below zero if none fits.

    ``least`` is known to be possible. Every model fits some node if it may lack enough bytes, so there is always a
    split unless more nodes are ``needed`` than there are parts: then None.
    """
    rooms = tables.rooms(usable)[::-1]
    if least is not None:
        rooms = rooms[rooms >= least]

    def holds(room: int) -> bool:
        return fewest_nodes(Windows(tables, room, slowest), usable, at_most, needed) is not None

    found = _first(rooms, holds)
    return None if found is None else int(rooms[found])


def _first(values: Integers, holds: Callable[[int], bool]) -> int | None:
    """The first index from which on ``holds`` is true, by bisection."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if holds(int(values[middle])):
            high = middle
        else:
            low = middle + 1
    return low if low < len(values) else None
