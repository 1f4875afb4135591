"""Layers shared evenly, and the weights of a run of layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.models.layout import ModelLayout


def even_split(layer_count: int, node_count: int) -> tuple[int, ...]:
    """Layers per node, as equal as they can be; the first of at least one node take the remainder."""
    whole, remainder = divmod(layer_count, node_count)
    return tuple(whole + (index < remainder) for index in range(node_count))


def stage_weight_bytes(layout: ModelLayout, first_layer: int, end_layer: int, rank_count: int = 1) -> int:
    """Weights of layers ``[first_layer, end_layer)``, with the embedding on the first stage, norm and head on the last.

    A tied embedding is counted once when one stage is both first and last. Of a stage of several ranks, each holds
    an equal share of what can be divided, and all of the rest (norms, routers, embeddings).
    """
    first, last = first_layer == 0, end_layer == len(layout.layer_bytes)
    total = sum(layout.layer_bytes[first_layer:end_layer])
    divided = sum(layout.layer_divided_bytes[first_layer:end_layer])
    if first:
        total += layout.embedding_bytes
    if last:
        total += layout.head_bytes
        divided += layout.head_divided_bytes
        if layout.tied_embedding and not first:
            total += layout.embedding_bytes - layout.first_alone_bytes
    return total - divided + -(-divided // rank_count)
