"""The description of one node that the rest of Pomona plans with and shows."""

from __future__ import annotations

import msgspec


class Versions(msgspec.Struct, frozen=True):
    """What has to agree between nodes before they may share a model."""

    pomona: str
    mlx: str
    mlx_lm: str
    python: str
    system: str
    """Operating system and its version, as people say it: ``macOS 26.1``, ``Debian GNU/Linux 12``."""


class NodeResources(msgspec.Struct, frozen=True):
    """One snapshot of a node."""

    node_id: str
    name: str
    chip: str
    memory_total_bytes: int
    """Physical memory, or the budget of a virtual node."""
    memory_available_bytes: int
    """What a model may take now without pushing other programs out; at most the total."""
    virtual: bool
    """True for a second agent on the same machine, with a budget of its own."""
    versions: Versions
