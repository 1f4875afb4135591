"""The graph of a stage's next step, built while its input is still on its way.

MLX computes nothing before it is told to, but building a graph is Python's work: a tenth of a token's time and more.
One node alone hides that behind the computing of the token before. A stage of a pipeline cannot: its next input is not
there yet. So it builds on arrays that are blank, and fills them when the input has come: a buffer is read when a graph
is evaluated, not before. What came instead, if it is another step, finds the caches as they were.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import mlx.core as mx
import numpy as np

from runtime.engine.caches import parts_of
from runtime.engine.tensors import Blank, to_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runtime.engine.absent import Span
    from runtime.engine.caches import BatchCache, SequenceCache
    from runtime.engine.frames import CarriedArray, Step
    from runtime.engine.handover import Carried
    from runtime.engine.sequences import SequenceStore

    Rows = tuple[int, ...]
    AnyCache = SequenceCache | BatchCache

_KNOWN_ROWS = 16
"""Groups whose order is remembered; there are seldom more than stages."""


class Built(NamedTuple):
    """A step of one token for each row, ready but for its input."""

    cache: AnyCache
    logits: Any
    carried: Carried
    tokens: Blank
    received: tuple[Blank, ...]

    @property
    def payload_bytes(self) -> int:
        """What has to come with the step."""
        return sum(blank.nbytes for blank in self.received)

    def fill(self, tokens: Sequence[int], payload: bytes | bytearray) -> None:
        """Give the graph its input: the rows' tokens, and the arrays of ``payload`` one after the other."""
        self.tokens.fill(np.array(tokens, np.int32).tobytes())
        begin = 0
        for blank in self.received:
            blank.fill(memoryview(payload)[begin : begin + blank.nbytes])
            begin += blank.nbytes


class _Seen(NamedTuple):
    """What is known of rows that have decoded: what a step of theirs brings, and which rows came next."""

    carried: tuple[CarriedArray, ...]
    next_rows: Rows


class Ahead:
    """Of one stage: which step will come next, and its graph."""

    def __init__(self, span: Span, sequences: SequenceStore) -> None:
        self._span = span
        self._sequences = sequences
        self._seen: dict[Rows, _Seen] = {}
        self._last: Rows = ()
        self._rows: Rows = ()
        self._built: Built | None = None
        self._undo: Callable[[], None] | None = None
        self.works = False
        """Whether this model's graphs may be built ahead: :func:`works_ahead` has seen it."""

    def saw(self, step: Step) -> None:
        """A step was done; those that decode tell which one is likely to come after which."""
        if step.width != 1 or not self.works:
            return
        if len(self._seen) > _KNOWN_ROWS:
            self._seen.clear()
        rows = step.sequences
        self._seen[rows] = _Seen(step.carried, self._seen[rows].next_rows if rows in self._seen else rows)
        if self._last in self._seen:
            self._seen[self._last] = self._seen[self._last]._replace(next_rows=rows)
        self._last = rows

    def build(self) -> None:
        """Build the graph of the step that is likely to come, if there is one that can be guessed."""
        last = self._seen.get(self._last)
        if self._built is not None or last is None or (seen := self._seen.get(last.next_rows)) is None:
            return
        cache = self._sequences.together(last.next_rows)
        if cache is None:
            return
        self._rows = last.next_rows
        self._undo = undo_of(cache)
        self._built = build_on_blanks(self._span, cache, len(self._rows), seen.carried)

    def take(self, step: Step, payload_bytes: int) -> Built | None:
        """The graph of this step; None, and the caches as they were, if it is not the one that was built."""
        built = self._built
        if built is None:
            return None
        is_it = step.sequences == self._rows and step.width == 1 and step.carried == self._seen[self._rows].carried
        if not is_it or payload_bytes != built.payload_bytes:
            self.undo()
            return None
        self._built = self._undo = None  # with the old caches gone, MLX writes into their buffers
        return built

    def undo(self) -> None:
        """Let go of what was built. To be called before anything else happens to the caches."""
        if self._undo is not None:
            self._undo()
        self._built = self._undo = None


def build_on_blanks(span: Span, cache: AnyCache, rows: int, carried: Sequence[CarriedArray]) -> Built:
    """The graph of one token for each row, on blank input."""
    tokens = Blank((rows, 1), "int32")
    received = {header.name: Blank(header.shape, header.dtype) for header in carried}
    arrays = {name: blank.array for name, blank in received.items()}
    logits, handed_on = span.forward(tokens.array, cache.layers, arrays)
    return Built(cache, logits, handed_on, tokens, tuple(received.values()))


def undo_of(cache: AnyCache) -> Callable[[], None]:
    """What puts the caches back. While it is kept, a write to one of them copies its buffer."""
    parts = {id(part): part for layer in cache.layers if layer is not None for part in (layer, *parts_of(layer))}
    kept = [(vars(part), _shallow(vars(part))) for part in parts.values()]

    def undo() -> None:
        for attributes, before in kept:
            attributes.clear()
            attributes.update(before)

    return undo


def works_ahead(span: Span, new_cache: Callable[[], SequenceCache]) -> bool:
    """Whether graphs that are built ahead give what others give, bit for bit.

    Not with a model whose code looks at numbers while it builds: then it sees blanks, which are none.
    """
    received = {name: _some_numbers(array) for name, array in span.blank().items()}
    headers, payload = to_payload(received)
    usual, ahead = new_cache(), new_cache()
    for cache in (usual, ahead):
        cache.expect_few_tokens()
        _evaluate(span, cache, *span.forward(mx.array([[1]]), cache.layers, received))
        cache.advance_stand_ins(1)
    expected = _evaluate(span, usual, *span.forward(mx.array([[2]]), usual.layers, received))
    undo = undo_of(ahead)
    build_on_blanks(span, ahead, 1, headers)
    undo()
    del undo
    built = build_on_blanks(span, ahead, 1, headers)
    built.fill((2,), bytes(payload))
    return _evaluate(span, ahead, built.logits, built.carried) == expected


def _some_numbers(like: mx.array) -> mx.array:
    numbers = mx.sin(mx.arange(like.size)).astype(like.dtype).reshape(like.shape)
    return mx.contiguous(numbers)


def _evaluate(span: Span, cache: AnyCache, logits: Any, carried: Carried) -> bytes:
    results = {"logits": mx.contiguous(logits)} if span.is_last else carried
    mx.eval(results, cache.states())
    return bytes(to_payload(results)[1])


def _shallow(value: Any) -> Any:
    """The value, with the arrays in it as handles of their own: writing to a cache changes the handle that it has."""
    if isinstance(value, mx.array):
        return copy.copy(value)
    if type(value) in (list, tuple):
        return type(value)(_shallow(item) for item in value)
    if type(value) is dict:
        return {name: _shallow(item) for name, item in value.items()}
    return value
