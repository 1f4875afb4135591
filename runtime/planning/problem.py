"""What is to be split: a model, nodes, the links between them, and a context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.planning.cost import LinkSpeed, ModelCost, NodeSpeed


@dataclass(frozen=True, slots=True)
class CostedNode:
    """A node with its speed and its memory."""

    name: str
    budget_bytes: int
    """Memory that a model may take on this node."""
    reserve_bytes: int
    """The part of the budget that is kept free for activations."""
    speed: NodeSpeed
    """Of a tensor group: what each of its ranks achieves, the all-reduces of one token in the overhead of a layer."""
    ranks: int = 1
    """More than 1 for a tensor group, which acts as one node; memory is then that of each of its ranks."""
    reduce_link: LinkSpeed | None = None
    """The slowest link of the group's ring."""
    tightest: str = ""
    """The name of the group's node with the least room."""

    @property
    def short_name(self) -> str:
        """Who lacks memory if anyone does."""
        return self.tightest or self.name


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

    def model_on(self, node: int) -> ModelCost:
        """The model as one rank of a node sees it: the whole, or its share of each layer."""
        return self.model.shared(self.nodes[node].ranks)


def uniform_links(node_count: int, link: LinkSpeed) -> tuple[tuple[LinkSpeed, ...], ...]:
    """The same link between any two nodes, as through one switch."""
    return ((link,) * node_count,) * node_count
