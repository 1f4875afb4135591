"""How a node's memory is shared, and how much of it a model may take: arithmetic alone.

Every byte is counted once: what other programs have, what Pomona's workers have (weights, caches, the rest of them),
and what is free. On a Mac others have (internal - purgeable) + wired + compressor, as Activity Monitor counts, less
our workers' footprint. psutil's ``available`` leaves the compressor out: it was seen to promise 18 GB on a Mac with
22.6 GB compressed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from resources.node import MemoryParts

if TYPE_CHECKING:
    from collections.abc import Iterable

GIB = 1 << 30
_KEPT_SHARE, _KEPT_MOST_BYTES = 10, 8 * GIB
_KEPT_FOR_PERSON_SHARE, _KEPT_FOR_PERSON_MOST_BYTES = 3, 32 * GIB


@dataclass(frozen=True, slots=True)
class WorkersMemory:
    """What the workers on a node have, all together."""

    footprint_bytes: int = 0
    """As the system counts it."""
    weight_bytes: int = 0
    """As they report it."""
    kv_bytes: int = 0


NO_WORKERS = WorkersMemory()


def total(memories: Iterable[WorkersMemory]) -> WorkersMemory:
    """Of the workers of all jobs."""
    known = tuple(memories)
    return WorkersMemory(
        sum(one.footprint_bytes for one in known),
        sum(one.weight_bytes for one in known),
        sum(one.kv_bytes for one in known),
    )


def memory_parts(total_bytes: int, unused_bytes: int, workers: WorkersMemory) -> MemoryParts:
    """The parts of ``total_bytes``, whose sum it is; ``unused_bytes`` is what nobody on the machine has.

    The total may be a virtual node's budget, of which others have what the machine cannot give.
    """
    ours = min(workers.footprint_bytes, total_bytes)
    free = max(min(unused_bytes, total_bytes - ours), 0)
    weights = min(workers.weight_bytes, ours)
    kv = min(workers.kv_bytes, ours - weights)
    return MemoryParts(
        others_bytes=total_bytes - ours - free,
        weight_bytes=weights,
        kv_bytes=kv,
        overhead_bytes=ours - weights - kv,
        free_bytes=free,
    )


def for_a_model(parts: MemoryParts, gpu_limit_bytes: int | None, cap_bytes: int | None) -> int:
    """Bytes that one more model may take now: what is free, within the limit of the GPU and of the person."""
    left = parts.free_bytes
    for limit in (gpu_limit_bytes, cap_bytes):
        if limit is not None:
            left = min(left, limit - parts.ours_bytes)
    return max(left, 0)


def default_cap(total_bytes: int, *, someone_sits_here: bool) -> int:
    """What Pomona may use at most of a machine while nobody has said otherwise.

    A tenth is left, 8 GiB at most, so that the system can breathe; a third, 32 GiB at most, where a person works.
    """
    if someone_sits_here:
        return total_bytes - min(total_bytes // _KEPT_FOR_PERSON_SHARE, _KEPT_FOR_PERSON_MOST_BYTES)
    return total_bytes - min(total_bytes // _KEPT_SHARE, _KEPT_MOST_BYTES)
