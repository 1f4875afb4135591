"""Made-up clusters and messages of the real types, for pictures of the window and for its tests."""

from __future__ import annotations

from gui.samples.models import LARGE_MODEL, SMALL_MODEL, of_layers
from gui.samples.nodes import (
    MAC_VERSIONS,
    capped_macs,
    like_nodes,
    macs,
    many_nodes,
    node,
    unequal_nodes,
    unpaired,
    virtual_nodes,
)
from gui.samples.runs import counters, finished, loading, near, plan_over, ready, run_measured, throughput

__all__ = [
    "LARGE_MODEL",
    "MAC_VERSIONS",
    "SMALL_MODEL",
    "capped_macs",
    "counters",
    "finished",
    "like_nodes",
    "loading",
    "macs",
    "many_nodes",
    "near",
    "node",
    "of_layers",
    "plan_over",
    "ready",
    "run_measured",
    "throughput",
    "unequal_nodes",
    "unpaired",
    "virtual_nodes",
]
