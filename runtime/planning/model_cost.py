"""A model in plain numbers, from its layout."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from runtime.models.cache_layout import LayerCache
from runtime.planning.cost import REQUESTS_PER_STEP, CopiedCache, LayerCost, ModelCost

if TYPE_CHECKING:
    from runtime.models.cache_layout import CacheCopy
    from runtime.models.layout import ModelLayout

_DIVIDED_KINDS = {"full", "sliding"}


@lru_cache(maxsize=8)
def model_cost(layout: ModelLayout) -> ModelCost:
    """``layout`` with its costs. A layout without figures plans with its weights alone."""
    figures, count = layout.figures, len(layout.layer_bytes)
    return ModelCost(
        name=layout.name,
        layers=tuple(_layer(layout, index) for index in range(count)),
        embedding_bytes=layout.embedding_bytes - layout.first_alone_bytes,
        head_bytes=layout.head_bytes,
        tied_embedding=layout.tied_embedding,
        hidden_bytes=figures.hidden_bytes if figures else 0,
        forbidden_cuts=frozenset(range(1, count)) if layout.pipeline_refusal else frozenset(),
        head_divided_bytes=layout.head_divided_bytes,
        copies=tuple(_copied(copy) for copy in figures.copies) if figures else (),
    )


def _copied(copy: CacheCopy) -> CopiedCache:
    cache = copy.cache
    kept = LayerCost(
        0,
        0,
        cache.bytes_per_token,
        cache.window_tokens,
        cache.state_bytes,
        cache_divides=cache.kind in _DIVIDED_KINDS,
    )
    return CopiedCache(copy.source, frozenset(copy.users), kept)


def _layer(layout: ModelLayout, index: int) -> LayerCost:
    figures, weights = layout.figures, layout.layer_bytes[index]
    active = layout.layer_active_bytes[index] if layout.layer_active_bytes else weights
    cache = figures.caches[index] if figures else LayerCache("none")
    keeps_cache = cache.kind != "none"
    if figures and not keeps_cache:  # perhaps it reads that of an earlier layer
        cache = next((copy.cache for copy in figures.copies if index in copy.users), cache)
    missed = (1 - figures.visited_share) ** (REQUESTS_PER_STEP - 1) if figures else 1.0
    return LayerCost(
        # What the first stage alone holds beside the embedding counts as part of its first layer.
        weight_bytes=weights + (layout.first_alone_bytes if index == 0 else 0),
        active_bytes=active,
        kv_bytes_per_token=cache.bytes_per_token,
        window_tokens=cache.window_tokens,
        state_bytes=cache.state_bytes,
        flops_per_token=2 * active / figures.parameter_bytes if figures else 0.0,
        # Each request picks its experts by chance, so further ones visit some of those that the first one missed.
        batch_bytes=weights - round((weights - active) * missed),
        divided_bytes=layout.layer_divided_bytes[index],
        cache_divides=cache.kind in _DIVIDED_KINDS,
        keeps_cache=keeps_cache,
    )
