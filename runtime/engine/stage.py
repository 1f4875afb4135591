"""A stage: a run of the model's layers with the caches of its sequences. Does what a step says, knows no schedule."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten

from runtime.engine.absent import Span
from runtime.engine.ahead import Ahead, works_ahead
from runtime.engine.batching import knows_padding
from runtime.engine.caches import SequenceCache, cut_free
from runtime.engine.hop import HopError
from runtime.engine.prefixes import KEPT_SEQUENCES
from runtime.engine.sampling import Choice, Sampler, likeliest
from runtime.engine.sequences import SequenceStore
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.engine.caches import BatchCache
    from runtime.engine.frames import Drop, Open, Step, TokenLogprobs
    from runtime.engine.handover import Carried
    from runtime.engine.sequences import OpenSequence

_KEPT_STATE_SHARE, _LEAST_KEPT = 4, 4
"""Kept sequences' recurrent states weigh at most a quarter of the weights, but so many may always stay."""
_CLEAR_CACHE_STEPS = 256  # as mlx-lm does: hands unused buffers back now and then


class StageResult(NamedTuple):
    """What came of a step."""

    carried: Carried
    """For the next stage: the hidden state, and what else the model's layers hand on."""
    tokens: tuple[int, ...] = ()
    """On the last stage: the tokens it chose, one for each row, if the step asked for them."""
    logits: tuple[bytes, ...] = ()
    """On the last stage: for each row that reports them, the logits as float32; empty if none does."""
    logprobs: tuple[TokenLogprobs | None, ...] = ()
    """On the last stage: likewise of log-probabilities."""


class Stage:
    """Layers ``[first_layer, end_layer)`` of a lazily loaded model.

    Everything else of the model stays lazy and is never read: laziness decides that the first stage alone holds the
    embedding and the last alone norm and head.
    """

    def __init__(self, model: nn.Module, first_layer: int, end_layer: int, kv_bits: int = 0) -> None:
        """``kv_bits`` 8 holds keys and values of full-attention layers in 8 bits, 0 as the model computes them."""
        self._model = model
        self._first_layer, self._end_layer = first_layer, end_layer
        self._kv_bits = kv_bits
        self._span = Span(model, first_layer, end_layer)
        self.is_first, self.is_last = self._span.is_first, self._span.is_last
        self._sequences = SequenceStore(self._new_cache)
        self._ahead = Ahead(self._span, self._sequences)
        self._steps = 0
        self.kept_limit = KEPT_SEQUENCES
        """How many sequences without a request may stay; less than the usual where their constant state is large."""

    def load(self) -> Iterator[int]:
        """Read the weights, one layer at a time; yields the bytes of each as it is done."""
        for layer in self._span.local:
            parameters = layer.parameters()
            with _exact_buffers():
                mx.eval(parameters)
            yield _nbytes(parameters)

    def warm_up(self) -> int:
        """One token through the stage, which reads what is left (embedding, norm, head) and compiles kernels.

        Returns the most bytes that the stage before sends for one token.
        """
        cache = self._new_cache()
        cache.expect_few_tokens()
        logits, carried = self._span.forward(mx.array([[0]]), cache.layers, self._span.blank())
        with _exact_buffers():
            mx.eval(logits if self.is_last else carried, cache.states())
        if self._kv_bits:
            self._try_quantized(cache)
        if state_bytes := cache.constant_bytes:
            weight_bytes = sum(_nbytes(layer.parameters()) for layer in self._span.local)
            self.kept_limit = min(self.kept_limit, max(_LEAST_KEPT, weight_bytes // _KEPT_STATE_SHARE // state_bytes))
        self._ahead.works = not (self.is_first and self.is_last) and works_ahead(self._span, self._new_cache)
        return self._span.received_bytes_per_token

    def hand_over_to(self, model: nn.Module, first_layer: int, end_layer: int) -> None:
        """Give the weights that are in memory here and needed there to ``model``, the same one loaded anew.

        Embedding, norm and head go along only to a stage that needs all of them that this one has: none stays in
        memory for nothing.
        """
        layers: Sequence[nn.Module] = self._model.layers
        for index in range(max(first_layer, self._first_layer), min(end_layer, self._end_layer)):
            model.layers[index].update(layers[index].parameters())
        is_first, is_last = first_layer == 0, end_layer == len(layers)
        if self.is_first <= is_first and self.is_last <= is_last:
            in_layers = {id(array) for layer in layers for _name, array in _flat(layer.parameters())}
            others = [(name, array) for name, array in _flat(self._model.parameters()) if id(array) not in in_layers]
            nn.Module.load_weights(model, others, strict=False)

    def _try_quantized(self, cache: SequenceCache) -> None:
        kind = self._model.model_type
        if not cache.can_quantize:
            raise PomonaError(f"A {kind} model has no cache that 8 bits make smaller; load it with the usual cache.")
        cache.quantize(self._kv_bits)
        try:
            logits, carried = self._span.forward(mx.array([[0]]), cache.layers, self._span.blank())
            mx.eval(logits if self.is_last else carried, cache.states())
        except Exception as error:  # whatever a model's code raises that wants plain keys
            raise PomonaError(
                f"A {kind} model does not work with an 8-bit KV cache; load it with the usual cache."
            ) from error

    @property
    def kv_bytes(self) -> int:
        """Bytes in the caches of all open sequences."""
        return self._sequences.nbytes

    def batches(self) -> bool:
        """Whether sequences of this model can decode in one step: on every stage alike, since all layers are asked."""
        return not self._kv_bits and knows_padding(self._model.layers[0]) and self._new_cache().can_batch

    def trim_limit_tokens(self) -> int:
        """Up to which length the caches of this model can be cut anywhere, again asking all layers."""
        return self._new_cache().trim_limit_tokens

    def open(self, frame: Open) -> None:
        """Make room for a new sequence."""
        self._ahead.undo()
        sampler = Sampler(frame.sampling)
        if frame.prefix is None:
            self._sequences.open(frame.sequence, sampler)
        else:
            self._sequences.open_copy(frame.sequence, sampler, frame.prefix.sequence, frame.prefix.token_count)

    def drop(self, frame: Drop) -> None:
        """Forget sequences; one that is not there is no fault."""
        self._ahead.undo()
        self._sequences.drop(frame.sequences)

    def build_ahead(self) -> None:
        """While there is nothing to do: build the graph of the step that is likely to come."""
        self._ahead.build()

    def run_built(self, step: Step, payload: bytes | bytearray) -> StageResult | None:
        """As :meth:`run`, if the graph of this step was built ahead; None if not. ``payload`` is what came with it."""
        built = self._ahead.take(step, len(payload))
        if built is None:
            return None
        sequences = self._rows_of(step)
        built.fill(step.tokens, payload)
        return self._finish(step, sequences, built.cache, built.logits, built.carried)

    def run(self, step: Step, received: Carried) -> StageResult:
        """Run one step and evaluate it. ``received`` is what the stage before made; nothing on the first stage."""
        self._ahead.undo()
        rows, width = len(step.sequences), step.width
        sequences = self._rows_of(step)
        if not self._span.fits(received, rows * width):
            shapes = {name: array.shape for name, array in received.items()}
            raise HopError(f"{rows} rows of {width} tokens came with {shapes}")
        cache = self._sequences.gather(step.sequences)
        logits, carried = self._span.forward(mx.array(step.tokens).reshape(rows, width), cache.layers, received)
        return self._finish(step, sequences, cache, logits, carried)

    def _rows_of(self, step: Step) -> list[OpenSequence]:
        sequences = [self._sequences[number] for number in step.sequences]
        for sequence, position in zip(sequences, step.positions, strict=True):
            if len(sequence.tokens) != position:
                raise HopError(f"a step at position {position}, but the cache holds {len(sequence.tokens)} tokens")
        return sequences

    def _finish(
        self,
        step: Step,
        sequences: list[OpenSequence],
        cache: SequenceCache | BatchCache,
        logits: mx.array,
        carried: Carried,
    ) -> StageResult:
        """Evaluate a step whose graph is there."""
        width = step.width
        cache.advance_stand_ins(width)
        if width > 1:
            cut_free(cache)
        if self._kv_bits and isinstance(cache, SequenceCache):
            cache.quantize(self._kv_bits)
        for row, sequence in enumerate(sequences):
            sequence.tokens += step.tokens[row * width : (row + 1) * width]
        # Without a token to choose, norm and head stay untouched, so they cost nothing.
        choices = _sampled(logits[:, -1, :], sequences, step.masks) if self.is_last and step.sample else None
        mx.eval(choices, carried, cache.states())
        self._steps += 1
        if width > 1 or self._steps % _CLEAR_CACHE_STEPS == 0:
            mx.clear_cache()
        self._ahead.saw(step)
        if choices is None:
            return StageResult(carried)
        logprobs = tuple(choice.logprobs() for choice in choices)
        return StageResult(
            carried,
            tuple(token for choice in choices for token in _as_tuple(choice.token)),
            _reported(logits[:, -1, :], sequences),
            logprobs if any(logprobs) else (),
        )

    def _new_cache(self) -> SequenceCache:
        return SequenceCache(self._model, self._span.cache_places)


@contextlib.contextmanager
def _exact_buffers() -> Iterator[None]:
    """While weights are read: no buffer of MLX's cache is reused.

    The cache hands out buffers up to two pages (32 kB) larger than asked for. That is nothing for a hidden state, but
    a weight would keep the larger one as long as the model is loaded.
    """
    mx.clear_cache()
    limit = mx.set_cache_limit(0)
    try:
        yield
    finally:
        mx.set_cache_limit(limit)


def _sampled(logits: mx.array, sequences: Sequence[OpenSequence], masks: Sequence[bytes]) -> list[Choice]:
    """The rows' choices, or one of all rows' tokens."""
    if not masks and all(sequence.sampler.is_plain for sequence in sequences):
        return [Choice(likeliest(logits))]
    return [
        sequence.sampler(logits[row : row + 1], sequence.tokens, allowed)
        for row, (sequence, allowed) in enumerate(zip(sequences, masks or [b""] * len(sequences), strict=True))
    ]


def _reported(logits: mx.array, sequences: Sequence[OpenSequence]) -> tuple[bytes, ...]:
    wanted = [sequence.sampler.reports_logits for sequence in sequences]
    if not any(wanted):
        return ()
    rows: Any = mx.contiguous(logits.astype(mx.float32))  # has a buffer, its stubs do not say so
    return tuple(bytes(memoryview(rows[row])) if wants else b"" for row, wants in enumerate(wanted))


def _as_tuple(tokens: mx.array) -> tuple[int, ...]:
    chosen: Any = tokens.tolist()
    return tuple(chosen)


def _flat(tree: object) -> list[tuple[str, mx.array]]:
    flat: Any = tree_flatten(tree)
    return list(flat)


def _nbytes(tree: object) -> int:
    return sum(array.nbytes for _name, array in _flat(tree))
