"""What is to be split: a model, nodes, the links between them, and a context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from runtime.planning.cost import LinkSpeed, ModelCost, NodeSpeed

Goal = Literal["chat", "requests", "even", "room"]
"""Fastest chat, most requests, even, most room left."""


@dataclass(frozen=True, slots=True)
class CostedNode:
    """A node with its speed and its memory."""

    name: str
    budget_bytes: int
    """Memory that a model may take on this node."""
    reserve_bytes: int
    """The part of the budget that is kept free for activations."""
    speed: NodeSpeed


@dataclass(frozen=True, slots=True)
class SplitProblem:
    """All that a split depends on. ``links[a][b]`` is the way from node ``a`` to node ``b``."""

    model: ModelCost
    nodes: tuple[CostedNode, ...]
    links: tuple[tuple[LinkSpeed, ...], ...]
    context_tokens: int

    def __post_init__(self) -> None:
        if not self.nodes or not self.model.layers:
            raise ValueError("a split needs a node and a layer")
        if [len(row) for row in self.links] != [len(self.nodes)] * len(self.nodes):
            raise ValueError("links must name a way from every node to every node")


def uniform_links(node_count: int, link: LinkSpeed) -> tuple[tuple[LinkSpeed, ...], ...]:
    """The same link between any two nodes, as through one switch."""
    return ((link,) * node_count,) * node_count
