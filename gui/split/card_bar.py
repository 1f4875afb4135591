"""The bar of a node's card: where its memory is, or would be, and where what models may have of it ends. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gui.preview import Share
    from resources.node import NodeResources
    from runtime.cluster.messages import RankHeld

_NO_BOUND_BYTES = 64 << 20
"""A bound so near the end of memory is not worth a mark: what is available comes rounded."""


@dataclass(frozen=True, slots=True)
class CardBar:
    """The parts of a card's bar, as fractions of its length."""

    used: float
    own: float
    beside: float
    bound: float | None
    limit: float | None = None


def planned_bar(share: Share) -> CardBar:
    """Other programs, weights, cache and reserve, where models must end, and where memory ends inside the bar."""
    node = share.node
    used = _used_bytes(node)
    scale = max(node.memory_total_bytes, used + share.needed_bytes, 1)
    limit = node.memory_total_bytes / scale if scale > node.memory_total_bytes else None
    return CardBar(
        used / scale,
        share.weight_bytes / scale,
        (share.needed_bytes - share.weight_bytes) / scale,
        _bound(node, used + node.memory_available_bytes, scale),
        limit,
    )


def running_bar(share: Share, held: RankHeld) -> CardBar:
    """Other programs and the rest of our own, weights, caches as they are now, and where models must end."""
    node = share.node
    scale = max(node.memory_total_bytes, held.held_bytes, 1)
    if node.memory is None:
        used, kv = max(node.memory_total_bytes - node.memory_available_bytes, 0), 0
    else:
        used, kv = node.memory.others_bytes + node.memory.overhead_bytes, node.memory.kv_bytes
    return CardBar(
        min(used / scale, 1.0),
        held.held_bytes / scale,
        kv / scale,
        _bound(node, used + kv + node.memory_available_bytes, scale),  # what it holds counts as available
    )


def _used_bytes(node: NodeResources) -> int:
    """What others have, and models of ours that run now."""
    if node.memory is None:
        return max(node.memory_total_bytes - node.memory_available_bytes, 0)
    return node.memory_total_bytes - node.memory.free_bytes


def _bound(node: NodeResources, end_bytes: int, scale: int) -> float | None:
    """None where memory itself is the bound."""
    return end_bytes / scale if end_bytes < node.memory_total_bytes - _NO_BOUND_BYTES else None
