"""What cards say of a node whatever becomes of its layers. No Qt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gui.formatting import count_words, round_bytes_words
from gui.preview import Fit
from resources.words import facts

if TYPE_CHECKING:
    from gui.preview import Share


def chip_words(share: Share) -> str:
    """``M4 Max · 128 GB · 546 GB/s``."""
    node = share.node
    parts = [node.chip, round_bytes_words(node.memory_total_bytes)]
    if node.memory_bandwidth_bytes_per_second:
        parts.append(f"{node.memory_bandwidth_bytes_per_second / 1e9:.0f} GB/s")
    if node.virtual:
        parts.append("virtual")
    return " · ".join(parts)


def node_tooltip(share: Share) -> str:
    """All that is known of the machine."""
    return "\n".join([share.node.name, *facts(share.node)])


def layers_held(share: Share, *, tensor: bool) -> str:
    """``18 layers``."""
    if share.fit in {Fit.LEFT_OUT, Fit.UNKNOWN}:
        return "no layers" if share.fit is Fit.LEFT_OUT else ""
    if tensor:
        return "all layers"
    shared = " shared" if share.group else ""
    return count_words(share.layer_count, "layer") + shared
