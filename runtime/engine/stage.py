"""A stage: a run of the model's layers with the caches of its sequences. Does what a step says, knows no schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx
from mlx.utils import tree_flatten

from runtime.engine.absent import keep_span
from runtime.engine.caches import SequenceCache
from runtime.engine.hop import HopError
from runtime.engine.sampling import Sampler, likeliest
from runtime.engine.sequences import SequenceStore
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import mlx.nn as nn

    from runtime.engine.frames import Drop, Open, Step
    from runtime.engine.sequences import OpenSequence

_CLEAR_CACHE_STEPS = 256  # as mlx-lm does: hands unused buffers back now and then


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
        self._sequences = SequenceStore(self._new_cache)
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
        cache = self._new_cache()
        logits = self._model(mx.array([[0]]), cache=cache.layers)
        hidden = self._taken()
        mx.eval(logits if self.is_last else hidden, cache.states())
        self._boundary.zeros = False
        return hidden.nbytes

    @property
    def kv_bytes(self) -> int:
        """Bytes in the caches of all open sequences."""
        return self._sequences.nbytes

    def batches(self) -> bool:
        """Whether sequences of this model can decode in one step: on every stage alike, since all layers are asked."""
        return self._new_cache().can_batch

    def trim_limit_tokens(self) -> int:
        """Up to which length the caches of this model can be cut anywhere, again asking all layers."""
        return self._new_cache().trim_limit_tokens

    def open(self, frame: Open) -> None:
        """Make room for a new sequence."""
        sampler = Sampler(frame.sampling)
        if frame.prefix is None:
            self._sequences.open(frame.sequence, sampler)
        else:
            self._sequences.open_copy(frame.sequence, sampler, frame.prefix.sequence, frame.prefix.token_count)

    def drop(self, frame: Drop) -> None:
        """Forget sequences; one that is not there is no fault."""
        self._sequences.drop(frame.sequences)

    def run(self, step: Step, received: mx.array | None) -> mx.array | None:
        """Run one step and evaluate it.

        ``received`` is the hidden state of the stage before, shape (rows, width, hidden size); None on the first stage.
        Returns the hidden state for the next stage, or, on the last stage, the sampled tokens, shape (rows,); None when
        the step asked for none.
        """
        rows, width = len(step.sequences), step.width
        sequences = [self._sequences[number] for number in step.sequences]
        for sequence, position in zip(sequences, step.positions, strict=True):
            if len(sequence.tokens) != position:
                raise HopError(f"a step at position {position}, but the cache holds {len(sequence.tokens)} tokens")
        if received is not None and received.shape[:2] != (rows, width):
            raise HopError(f"{rows} rows of {width} tokens came with a hidden state of shape {received.shape}")
        cache = self._sequences.gather(step.sequences)
        self._boundary.received = received
        logits = self._model(mx.array(step.tokens).reshape(rows, width), cache=cache.layers)
        hidden = self._taken()
        cache.advance_stand_ins(width)
        for row, sequence in enumerate(sequences):
            sequence.tokens += step.tokens[row * width : (row + 1) * width]
        if not self.is_last:
            result = mx.contiguous(hidden)
        elif step.sample:
            result = _sampled(logits[:, -1, :], sequences)
        else:
            result = None  # norm and head stay untouched, so they cost nothing
        mx.eval(result, cache.states())
        self._steps += 1
        if width > 1 or self._steps % _CLEAR_CACHE_STEPS == 0:
            mx.clear_cache()
        return result

    def _new_cache(self) -> SequenceCache:
        return SequenceCache(self._model, *self._span)

    def _taken(self) -> mx.array:
        """What the last local layer produced; both ends of the stage are empty afterwards."""
        hidden, self._boundary.produced, self._boundary.received = self._boundary.produced, None, None
        if hidden is None:
            raise PomonaError(
                f"A {self._model.model_type} model does not call its layers one by one and cannot be split."
            )
        return hidden


def _sampled(logits: mx.array, sequences: Sequence[OpenSequence]) -> mx.array:
    if all(sequence.sampler.is_plain for sequence in sequences):
        return likeliest(logits)
    return mx.concatenate(
        [sequence.sampler(logits[row : row + 1], sequence.tokens) for row, sequence in enumerate(sequences)]
    )


def _nbytes(tree: object) -> int:
    flat: Any = tree_flatten(tree)
    return sum(array.nbytes for _name, array in flat)
