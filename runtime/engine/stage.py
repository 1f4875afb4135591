"""A stage: a run of the model's layers with the caches of its sequences. Does what a step says, knows no schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx
from mlx.utils import tree_flatten

from runtime.engine.absent import keep_span
from runtime.engine.caches import SequenceCache
from runtime.engine.hop import HopError
from runtime.engine.sampling import Sampler
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import mlx.nn as nn

    from runtime.engine.frames import Drop, Open, Step

_CLEAR_CACHE_STEPS = 256  # as mlx-lm does: hands unused buffers back now and then


class _Sequence:
    def __init__(self, cache: SequenceCache, sampler: Sampler) -> None:
        self.cache = cache
        self.sampler = sampler
        self.position = 0


class Stage:
    """Layers ``[first_layer, end_layer)`` of a lazily loaded model.

    Everything else of the model stays lazy and is never read: laziness decides that the first stage alone holds the
    embedding and the last alone norm and head.
    """

    def __init__(self, model: nn.Module, first_layer: int, end_layer: int) -> None:
        layer_count = len(model.layers)
        self.is_first = first_layer == 0
        self.is_last = end_layer == layer_count
        self._model = model
        self._span = first_layer, end_layer
        self._boundary, self._layers = keep_span(model, first_layer, end_layer)
        self._sequences: dict[int, _Sequence] = {}
        self._steps = 0

    def load(self) -> Iterator[int]:
        """Read the weights, one layer at a time; yields the bytes of each as it is done."""
        for layer in self._layers:
            parameters = layer.parameters()
            mx.eval(parameters)
            yield _nbytes(parameters)

    def warm_up(self) -> int:
        """One token through the stage, which reads what is left (embedding, norm, head) and compiles kernels.

        Returns the bytes of one token's hidden state.
        """
        self._boundary.zeros = not self.is_first
        cache = SequenceCache(self._model, *self._span)
        logits = self._model(mx.array([[0]]), cache=cache.layers)
        hidden = self._taken()
        mx.eval(logits if self.is_last else hidden, cache.states())
        self._boundary.zeros = False
        return hidden.nbytes

    @property
    def kv_bytes(self) -> int:
        """Bytes in the caches of all open sequences."""
        return sum(sequence.cache.nbytes for sequence in list(self._sequences.values()))

    def open(self, frame: Open) -> None:
        """Make room for a new sequence."""
        self._sequences[frame.sequence] = _Sequence(SequenceCache(self._model, *self._span), Sampler(frame.sampling))

    def drop(self, frame: Drop) -> None:
        """Forget a sequence; one that is not there is no fault."""
        self._sequences.pop(frame.sequence, None)

    def run(self, step: Step, received: mx.array | None) -> mx.array | None:
        """Run one step and evaluate it.

        ``received`` is the hidden state of the stage before, shape (1, tokens, hidden size); None on the first stage.
        Returns the hidden state for the next stage, or, on the last stage, the sampled token of shape (1,); None when
        the step asked for none.
        """
        sequence = self._sequences.get(step.sequence)
        if sequence is None:
            raise HopError(f"a step for sequence {step.sequence}, which is not open")
        if sequence.position != step.position:
            raise HopError(f"a step at position {step.position}, but the cache holds {sequence.position} tokens")
        if received is not None and received.shape[:2] != (1, len(step.tokens)):
            raise HopError(f"{len(step.tokens)} tokens came with a hidden state of shape {received.shape}")
        self._boundary.received = received
        logits = self._model(mx.array([step.tokens]), cache=sequence.cache.layers)
        hidden = self._taken()
        sequence.cache.advance_stand_ins(len(step.tokens))
        sequence.position += len(step.tokens)
        if not self.is_last:
            result = mx.contiguous(hidden)
        elif step.sample:
            result = sequence.sampler(logits[:, -1, :])
        else:
            result = None  # norm and head stay untouched, so they cost nothing
        mx.eval(result, sequence.cache.states())
        self._steps += 1
        if len(step.tokens) > 1 or self._steps % _CLEAR_CACHE_STEPS == 0:
            mx.clear_cache()
        return result

    def _taken(self) -> mx.array:
        """What the last local layer produced; both ends of the stage are empty afterwards."""
        hidden, self._boundary.produced, self._boundary.received = self._boundary.produced, None, None
        if hidden is None:
            raise PomonaError(
                f"A {self._model.model_type} model does not call its layers one by one and cannot be split."
            )
        return hidden


def _nbytes(tree: object) -> int:
    flat: Any = tree_flatten(tree)
    return sum(array.nbytes for _name, array in flat)
