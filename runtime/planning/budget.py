"""The bytes that a node needs for a run of layers, against its budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.planning.cost import ModelCost
    from runtime.planning.problem import CostedNode


@dataclass(frozen=True, slots=True)
class StageBytes:
    """What a stage takes of its node's budget."""

    weight_bytes: int
    kv_bytes: int
    reserve_bytes: int
    budget_bytes: int

    @property
    def room_bytes(self) -> int:
        """What is left; below zero, what is missing."""
        return self.budget_bytes - self.reserve_bytes - self.weight_bytes - self.kv_bytes


def stage_bytes(
    model: ModelCost, node: CostedNode, first_layer: int, end_layer: int, context_tokens: int
) -> StageBytes:
    """Layers ``[first_layer, end_layer)`` on ``node``, on each rank of a group, their cache full at ``context_tokens``.

    Copies of the caches of earlier stages count as its own. The first stage holds the embedding, the last one norm and
    head; a tied embedding counts once where both are one.
    """
    model = model.shared(node.ranks)
    layers = model.layers[first_layer:end_layer]
    weights = sum(layer.weight_bytes for layer in layers)
    if first_layer == 0:
        weights += model.embedding_bytes
    if end_layer == len(model.layers):
        weights += model.head_bytes
        if model.tied_embedding and first_layer > 0:
            weights += model.embedding_bytes
    cache = sum(layer.cache_bytes(context_tokens) for layer in layers)
    cache += model.copied_bytes(first_layer, end_layer, context_tokens)
    return StageBytes(weights, cache, node.reserve_bytes, node.budget_bytes)
