"""KV caches of one sequence on one stage.

The model expects a cache for each of its layers. Only local layers fill theirs. The others matter because models read
masks from a fixed index (say, the first full-attention layer): an absent layer's slot points to a local cache of the
same kind, or keeps a stand-in whose offset is moved by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlx_lm.models.cache import make_prompt_cache

if TYPE_CHECKING:
    import mlx.nn as nn

_KIND_ATTRIBUTES = ("max_size", "keep", "chunk_size")


class SequenceCache:
    """The caches that the model's forward takes (one per layer), and the local ones among them."""

    def __init__(self, model: nn.Module, first_layer: int, end_layer: int) -> None:
        self.layers: list[Any] = make_prompt_cache(model)
        self._stand_ins: list[Any] = []
        self.local: list[Any] = self.layers[first_layer:end_layer]
        for index in (*range(first_layer), *range(end_layer, len(self.layers))):
            twin = next((cache for cache in self.local if _same_kind(cache, self.layers[index])), None)
            if twin is None:
                self._stand_ins.append(self.layers[index])
            else:
                self.layers[index] = twin

    def advance_stand_ins(self, token_count: int) -> None:
        """After a forward: let the caches of absent layers count the tokens that a real one would hold."""
        for stand_in in self._stand_ins:
            for part in getattr(stand_in, "caches", (stand_in,)):
                if hasattr(part, "offset"):
                    part.offset += token_count

    def states(self) -> list[Any]:
        """The arrays of the local caches, to be evaluated."""
        return [cache.state for cache in self.local]

    @property
    def nbytes(self) -> int:
        """Bytes that the local caches hold."""
        return sum(cache.nbytes for cache in self.local)


def _same_kind(first: Any, second: Any) -> bool:  # the caches of mlx-lm share no useful base type
    if type(first) is not type(second):
        return False
    if any(getattr(first, name, None) != getattr(second, name, None) for name in _KIND_ATTRIBUTES):
        return False
    parts = [[type(part) for part in getattr(cache, "caches", ())] for cache in (first, second)]
    return parts[0] == parts[1]
