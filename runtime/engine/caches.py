"""KV caches on one stage: of one sequence, and of several that decode in one step.

The model expects a cache for each of its layers. Only local layers fill theirs. The others matter because models read
masks from a fixed index (say, the first full-attention layer): an absent layer's slot points to a local cache of the
same kind, or keeps a stand-in whose offset is moved by hand.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Self

import mlx.core as mx
from mlx_lm.models.cache import (
    ArraysCache,
    BatchKVCache,
    BatchRotatingKVCache,
    CacheList,
    KVCache,
    RotatingKVCache,
    make_prompt_cache,
)

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import mlx.nn as nn

_KIND_ATTRIBUTES = ("max_size", "keep", "chunk_size")
_BATCHED_KINDS = (KVCache, RotatingKVCache, ArraysCache)
"""Kinds of which mlx-lm can merge several sequences into one, and take one out again."""
UNLIMITED_TOKENS = 1 << 40
"""The trim limit of caches that can be cut anywhere."""
_QUANTIZATION_GROUPS = (64, 32)
"""Numbers that share a scale; the first is mlx-lm's own choice."""


class SequenceCache:
    """The caches that the model's forward takes (one per layer), and the local ones among them."""

    def __init__(self, model: nn.Module, places: Sequence[int]) -> None:
        """``places`` are those of the local caches in the model's list."""
        self.layers: list[Any] = make_prompt_cache(model)
        self.places = tuple(places)
        self.can_batch = all(map(_can_batch, self.layers))
        self.trim_limit_tokens = min(_trim_limit_tokens(part) for cache in self.layers for part in parts_of(cache))
        self.local: list[Any] = [self.layers[place] for place in self.places]
        self.twins: dict[int, int] = {}
        """For each absent layer with a local cache of its kind: that cache's place in ``local``."""
        self.stand_ins: dict[int, Any] = {}
        """For each other absent layer: what stands for its cache."""
        for index in sorted(set(range(len(self.layers))).difference(self.places)):
            kind = self.layers[index]
            twin = next((place for place, cache in enumerate(self.local) if _same_kind(cache, kind)), None)
            if twin is None:
                self.stand_ins[index] = kind
            else:
                self.twins[index] = twin
        self.link()

    def expect_few_tokens(self) -> None:
        """Let the local caches grow by single tokens; otherwise the first one takes memory for 256."""
        for cache in self.local:
            for part in parts_of(cache):
                if hasattr(part, "step"):
                    part.step = 1

    def quantize(self, bits: int) -> None:
        """Hold what full-attention layers have seen in ``bits``: as in mlx-lm, from the end of the step that saw it.

        Raises :class:`PomonaError` where their keys and values do not divide into groups that share a scale.
        """
        for place, cache in enumerate(self.local):
            if type(cache) is KVCache and not cache.empty():
                self.local[place] = cache.to_quantized(_quantization_group(cache), bits)
        self.link()

    @property
    def can_quantize(self) -> bool:
        """Whether any layer, absent ones included, has a cache that :meth:`quantize` makes smaller."""
        return any(type(cache) is KVCache for cache in self.layers)

    @property
    def constant_bytes(self) -> int:
        """What local caches hold that does not grow with the sequence: recurrent state."""
        return sum(part.nbytes for cache in self.local for part in parts_of(cache) if isinstance(part, ArraysCache))

    def emptied(self) -> Self:
        """The way that local caches, twins and stand-ins are linked, without a local cache."""
        other = copy.copy(self)
        other.layers, other.local = [None] * len(self.layers), []
        return other

    def advance_stand_ins(self, token_count: int) -> None:
        """After a forward: let the caches of absent layers count the tokens that a real one would hold."""
        for stand_in in self.stand_ins.values():
            _advance(stand_in, token_count)

    def copied(self, trim_tokens: int) -> Self:
        """A copy without the last ``trim_tokens`` tokens. Arrays are shared until one of the two writes."""
        other = copy.deepcopy(self)
        if trim_tokens:
            for cache in (*other.local, *other.stand_ins.values()):
                cache.trim(trim_tokens)
        return other

    def with_local(self, local: list[Any], token_count: int) -> Self:
        """Caches like these for another sequence, whose local ones are given and hold ``token_count`` tokens."""
        other = copy.copy(self)
        other.layers = list(self.layers)
        other.local = local
        other.stand_ins = {index: copy.deepcopy(stand_in) for index, stand_in in self.stand_ins.items()}
        for stand_in in other.stand_ins.values():
            _advance(stand_in, token_count - _offset(stand_in))
        other.link()
        return other

    def states(self) -> list[Any]:
        """The arrays of the local caches, to be evaluated."""
        return [cache.state for cache in self.local]

    @property
    def nbytes(self) -> int:
        """Bytes that the local caches hold."""
        return sum(cache.nbytes for cache in self.local)

    def link(self) -> None:
        """Put local caches, twins and stand-ins where the model looks for them."""
        for index, cache in zip(self.places, self.local, strict=True):
            self.layers[index] = cache
        for index, place in self.twins.items():
            self.layers[index] = self.local[place]
        for index, stand_in in self.stand_ins.items():
            self.layers[index] = stand_in


class BatchCache:
    """The caches of several sequences that decode in one step, one row each, shorter ones padded on the left."""

    def __init__(self, sequences: Sequence[SequenceCache], lengths: Sequence[int]) -> None:
        """``lengths`` are the tokens that each of ``sequences`` holds."""
        self._pattern = sequences[0].emptied()  # or the first sequence's own caches would stay as long as the batch
        self.local: list[Any] = [
            type(caches[0]).merge(list(caches))
            for caches in zip(*(sequence.local for sequence in sequences), strict=True)
        ]
        self.layers = self._linked(lengths)

    def extend(self, sequences: Sequence[SequenceCache], lengths: Sequence[int]) -> None:
        """Add rows at the end; ``lengths`` are those of all rows, the new ones included."""
        added = BatchCache(sequences, lengths[-len(sequences) :])
        for cache, more in zip(self.local, added.local, strict=True):
            cache.extend(more)
        self.layers = self._linked(lengths)

    def keep(self, rows: Sequence[int], lengths: Sequence[int]) -> None:
        """Keep only these rows, in this order; ``lengths`` are theirs."""
        indices = mx.array(list(rows))
        for cache in self.local:
            cache.filter(indices)
        self.layers = self._linked(lengths)

    def take_out(self, row: int, token_count: int) -> SequenceCache:
        """A row as a sequence of its own, which holds ``token_count`` tokens. The row stays until it is not kept."""
        return self._pattern.with_local([cache.extract(row) for cache in self.local], token_count)

    def advance_stand_ins(self, token_count: int) -> None:
        """After a forward: as for one sequence."""
        for index in self._pattern.stand_ins:
            _advance(self.layers[index], token_count)

    def states(self) -> list[Any]:
        """The arrays of the caches, to be evaluated; also the offsets of stand-ins, which would grow a graph."""
        stand_ins = [_batch_offsets(self.layers[index]) for index in self._pattern.stand_ins]
        return [[cache.state for cache in self.local], stand_ins]

    @property
    def nbytes(self) -> int:
        """Bytes that the local caches hold."""
        return sum(cache.nbytes for cache in self.local)

    def _linked(self, lengths: Sequence[int]) -> list[Any]:
        layers: list[Any] = list(self._pattern.layers)
        for index, cache in zip(self._pattern.places, self.local, strict=True):
            layers[index] = cache
        for index, place in self._pattern.twins.items():
            layers[index] = self.local[place]
        for index, stand_in in self._pattern.stand_ins.items():
            layers[index] = _batch_stand_in(stand_in, lengths)
        return layers


def cut_free(cache: SequenceCache | BatchCache) -> None:
    """Before a step of several tokens is evaluated: have recurrent state hold its own bytes alone.

    Models cut it out of what they computed for every token of the step, and a slice keeps all of that in memory.
    """
    for local in cache.local:
        for part in parts_of(local):
            if isinstance(part, ArraysCache):
                part.cache = [None if state is None else mx.contiguous(state) for state in part.cache]


def parts_of(cache: Any) -> tuple[Any, ...]:
    """The caches that a layer's one is made of: nearly always itself alone."""
    return cache.caches if isinstance(cache, CacheList) else (cache,)


def _quantization_group(cache: Any) -> int:
    head_numbers = {cache.keys.shape[-1], cache.values.shape[-1]}
    for group in _QUANTIZATION_GROUPS:
        if not any(numbers % group for numbers in head_numbers):
            return group
    raise PomonaError(
        f"This model's attention heads have {min(head_numbers)} numbers, which do not divide into the groups that an "
        "8-bit KV cache needs; load it with the usual cache."
    )


def _can_batch(cache: Any) -> bool:
    return all(type(part) in _BATCHED_KINDS for part in parts_of(cache))


def _trim_limit_tokens(cache: Any) -> int:
    if type(cache) is KVCache:
        return UNLIMITED_TOKENS
    if type(cache) is RotatingKVCache:  # until the oldest token is overwritten
        return int(cache.max_size) - 1
    return 0


def _offset(cache: Any) -> int:
    return next((int(part.offset) for part in parts_of(cache) if hasattr(part, "offset")), 0)


def _advance(cache: Any, token_count: int) -> None:
    for part in parts_of(cache):
        if isinstance(part, BatchKVCache | BatchRotatingKVCache):
            part._idx += token_count  # noqa: SLF001  the batch caches have no other way to move their end
        if isinstance(part, BatchRotatingKVCache):
            part._offset += token_count  # noqa: SLF001  the same
        if hasattr(part, "offset"):
            part.offset = part.offset + token_count


def _batch_offsets(cache: Any) -> list[mx.array]:
    return [part.offset for part in parts_of(cache) if hasattr(part, "offset")]


def _batch_stand_in(cache: Any, lengths: Sequence[int]) -> Any:
    """A stand-in for the batch of sequences that hold so many tokens: the right offsets and padding, no contents."""
    if isinstance(cache, CacheList):
        return CacheList(*(_batch_stand_in(part, lengths) for part in cache.caches))
    padding = [max(lengths) - length for length in lengths]
    if isinstance(cache, RotatingKVCache):
        stand_in: Any = BatchRotatingKVCache(cache.max_size, padding)
    elif isinstance(cache, KVCache):
        stand_in = BatchKVCache(padding)
    else:
        return copy.copy(cache)  # recurrent state: no offset, no mask from it in decode
    _advance(stand_in, max(lengths))
    return stand_in


def _same_kind(first: Any, second: Any) -> bool:
    if type(first) is not type(second):
        return False
    if any(getattr(first, name, None) != getattr(second, name, None) for name in _KIND_ATTRIBUTES):
        return False
    parts = [[type(part) for part in getattr(cache, "caches", ())] for cache in (first, second)]
    return parts[0] == parts[1]
