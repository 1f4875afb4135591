"""Where the sequences of a stage live: each in caches of its own, or as a row of a batch.

A step names its rows; what is needed for them to lie side by side happens here. So there are no orders about batches,
which two stages could understand differently.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import mlx.core as mx

from runtime.engine.caches import BatchCache
from runtime.engine.hop import HopError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runtime.engine.caches import SequenceCache
    from runtime.engine.sampling import Sampler


@dataclass(slots=True, eq=False)
class OpenSequence:
    """A sequence with its sampler; ``tokens`` are those that its caches hold."""

    sampler: Sampler
    tokens: list[int]
    cache: SequenceCache | None
    """None while it is a row of ``batch``."""
    batch: _Batch | None = field(default=None, repr=False)


@dataclass(slots=True, eq=False)
class _Batch:
    rows: list[OpenSequence]
    """Those that were dropped or have gone on alone stay until the next step."""
    cache: BatchCache

    def holds(self, sequences: list[OpenSequence]) -> bool:
        """Whether its rows are these and every one of them is up to date."""
        return self.rows == sequences and all(sequence.batch is self for sequence in sequences)


class SequenceStore:
    """The open sequences of one stage, by the numbers that the driver gave them."""

    def __init__(self, new_cache: Callable[[], SequenceCache]) -> None:
        self._new_cache = new_cache
        self._open: dict[int, OpenSequence] = {}

    def __getitem__(self, number: int) -> OpenSequence:
        """Raises :class:`HopError` for a sequence that is not open."""
        sequence = self._open.get(number)
        if sequence is None:
            raise HopError(f"a step for sequence {number}, which is not open")
        return sequence

    def open(self, number: int, sampler: Sampler) -> None:
        """A new, empty sequence."""
        self._open[number] = OpenSequence(sampler, [], self._new_cache())

    def open_copy(self, number: int, sampler: Sampler, source: int, token_count: int) -> None:
        """A new sequence that begins with the first ``token_count`` tokens of ``source``."""
        original = self[source]
        cache = self._alone(original).copied(len(original.tokens) - token_count)
        self._open[number] = OpenSequence(sampler, original.tokens[:token_count], cache)

    def drop(self, numbers: Sequence[int]) -> None:
        """Forget sequences; one that is not there is no fault."""
        for number in numbers:
            self._open.pop(number, None)

    def gather(self, numbers: Sequence[int]) -> SequenceCache | BatchCache:
        """The caches of these sequences as rows in this order."""
        sequences = [self[number] for number in numbers]
        if len(sequences) == 1:
            return self._alone(sequences[0])
        batch = _commonest_batch(sequences)
        if batch is None:
            return self._new_batch(sequences)
        if batch.holds(sequences):
            return batch.cache
        staying = [sequence for sequence in sequences if sequence.batch is batch]
        if staying != sequences[: len(staying)]:
            return self._new_batch(sequences)
        self._narrow(batch, staying)
        if joining := sequences[len(staying) :]:
            caches = [self._alone(sequence) for sequence in joining]
            batch.cache.extend(caches, _lengths(sequences))
            _enter(batch, joining)
        return batch.cache

    def together(self, numbers: Sequence[int]) -> SequenceCache | BatchCache | None:
        """Their caches as rows in this order, if they lie so already and no sequence has to move."""
        sequences = [self._open[number] for number in numbers if number in self._open]
        if len(sequences) != len(numbers):
            return None
        if len(sequences) == 1:
            return sequences[0].cache
        batch = sequences[0].batch
        return batch.cache if batch is not None and batch.holds(sequences) else None

    @property
    def nbytes(self) -> int:
        """Bytes in all caches."""
        caches = {id(cache): cache for sequence in list(self._open.values()) if (cache := _home(sequence)) is not None}
        return sum(cache.nbytes for cache in caches.values())

    def _new_batch(self, sequences: list[OpenSequence]) -> BatchCache:
        caches = [self._alone(sequence) for sequence in sequences]
        batch = _Batch([], BatchCache(caches, _lengths(sequences)))
        _enter(batch, sequences)
        return batch.cache

    def _narrow(self, batch: _Batch, staying: list[OpenSequence]) -> None:
        """Make ``staying`` the batch's only rows; others that are still open get caches of their own."""
        alive = set(map(id, self._open.values()))
        for sequence in batch.rows:
            if sequence not in staying and id(sequence) in alive and sequence.batch is batch:
                self._alone(sequence)
        if batch.rows != staying:
            batch.cache.keep([batch.rows.index(sequence) for sequence in staying], _lengths(staying))
            batch.rows = list(staying)

    def _alone(self, sequence: OpenSequence) -> SequenceCache:
        """The sequence's own caches, taken out of its batch if it is in one."""
        if sequence.batch is not None:
            row = sequence.batch.rows.index(sequence)
            sequence.cache = sequence.batch.cache.take_out(row, len(sequence.tokens))
            mx.eval(sequence.cache.states())  # or it would keep the whole batch in memory
            sequence.batch = None
        assert sequence.cache is not None  # it is in a batch or has its own
        return sequence.cache


def _enter(batch: _Batch, sequences: list[OpenSequence]) -> None:
    for sequence in sequences:
        sequence.cache, sequence.batch = None, batch
    batch.rows += sequences


def _home(sequence: OpenSequence) -> SequenceCache | BatchCache | None:
    batch = sequence.batch
    return sequence.cache if batch is None else batch.cache


def _commonest_batch(sequences: list[OpenSequence]) -> _Batch | None:
    batches = Counter(id(sequence.batch) for sequence in sequences if sequence.batch is not None)
    if not batches:
        return None
    wanted = batches.most_common(1)[0][0]
    return next(sequence.batch for sequence in sequences if id(sequence.batch) == wanted)


def _lengths(sequences: list[OpenSequence]) -> list[int]:
    return [len(sequence.tokens) for sequence in sequences]
