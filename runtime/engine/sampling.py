"""The next token from the logits.

One sampler for each sequence. The random key of a token follows from the seed and the token's place in the sequence and
from nothing else, so a seeded request gives the same text whatever else runs; and one that is submitted again as prompt
and answer so far, to a pipeline that was rebuilt, goes on as it would have.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import mlx.core as mx
from mlx_lm.sample_utils import apply_min_p, apply_top_k, apply_top_p, make_logits_processors

from runtime.engine.frames import TokenLogprobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.engine.frames import Sampling

PENALTY_CONTEXT_TOKENS = 1024
"""Penalties look at so many of a sequence's newest tokens."""


class Sampler:
    """Chooses a token from logits of shape (1, vocabulary)."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._processors = make_logits_processors(
            dict(sampling.logit_bias),
            None if sampling.repetition_penalty == 1 else sampling.repetition_penalty,
            PENALTY_CONTEXT_TOKENS,
            sampling.presence_penalty,
            PENALTY_CONTEXT_TOKENS,
            sampling.frequency_penalty,
            PENALTY_CONTEXT_TOKENS,
        )

    @property
    def is_plain(self) -> bool:
        """Whether it takes the likeliest token and nothing else, so that rows can be chosen together."""
        return self._sampling.temperature == 0 and not self._processors and self._sampling.logprobs < 0

    @property
    def reports_logits(self) -> bool:
        """Whether the logits themselves are wanted, too."""
        return self._sampling.report_logits

    def __call__(self, logits: mx.array, tokens: Sequence[int], allowed: bytes = b"") -> Choice:
        """A choice that is not evaluated yet. ``tokens`` are all of the sequence so far."""
        if self._processors:
            context = mx.array(list(tokens[-PENALTY_CONTEXT_TOKENS:]))
            for processor in self._processors:
                logits = processor(context, logits)
        if allowed:
            logits = mx.where(_unpacked(allowed, logits.shape[-1]), logits, -mx.inf)
        logprobs = _logprobs(logits)
        token = self._chosen(logprobs, len(tokens))
        if self._sampling.logprobs < 0:
            return Choice(token)
        logprobs = logprobs[0].astype(mx.float32)
        top = _likeliest_of(logprobs, min(self._sampling.logprobs, logprobs.size))
        return Choice(token, logprobs[token], top, logprobs[top])

    def _chosen(self, logprobs: mx.array, position: int) -> mx.array:
        if self._sampling.temperature == 0:
            return mx.argmax(logprobs, axis=-1)
        if self._sampling.top_p < 1:
            logprobs = apply_top_p(logprobs, self._sampling.top_p)
        if self._sampling.min_p > 0:
            logprobs = apply_min_p(logprobs, self._sampling.min_p)
        if 0 < self._sampling.top_k < logprobs.shape[-1]:
            logprobs = apply_top_k(logprobs, self._sampling.top_k)
        key = _random_key(self._sampling.seed, position)
        return mx.random.categorical(logprobs / self._sampling.temperature, axis=-1, key=key)


class Choice(NamedTuple):
    """The chosen token, shape (1,), and its log-probability and the likeliest tokens with theirs if they are wanted."""

    token: mx.array
    logprob: mx.array | None = None
    top: mx.array | None = None
    top_logprobs: mx.array | None = None

    def logprobs(self) -> TokenLogprobs | None:
        """As it travels; evaluates."""
        if self.logprob is None or self.top is None or self.top_logprobs is None:
            return None
        ids, values = cast("list[int]", self.top.tolist()), cast("list[float]", self.top_logprobs.tolist())
        likely = tuple((token, value) for token, value in zip(ids, values, strict=True) if value > -math.inf)
        return TokenLogprobs(cast("float", self.logprob.item()), likely)


def likeliest(logits: mx.array) -> mx.array:
    """The likeliest token of each row of logits, shape (rows, vocabulary)."""
    return mx.argmax(_logprobs(logits), axis=-1)


def _likeliest_of(logprobs: mx.array, count: int) -> mx.array:
    if not count:
        return mx.zeros(0, mx.uint32)
    some = mx.argpartition(-logprobs, kth=count - 1)[:count]
    return some[mx.argsort(-logprobs[some])]


def _unpacked(allowed: bytes, vocabulary: int) -> mx.array:
    """One truth value for each token of the vocabulary; those beyond the mask's end may not be chosen."""
    packed: Any = memoryview(allowed)  # mlx takes any buffer, its stubs do not say so
    bits = mx.array(packed)[:, None] >> mx.arange(8, dtype=mx.uint8) & 1
    flat = bits.flatten()[:vocabulary].astype(mx.bool_)
    return mx.pad(flat, (0, vocabulary - flat.size))


def _random_key(seed: int, position: int) -> mx.array:
    # Hashed, because the draws of keys that differ in few bits need not be independent.
    digest = hashlib.blake2b(f"{seed} {position}".encode(), digest_size=8).digest()
    return mx.random.key(int.from_bytes(digest))


def _logprobs(logits: mx.array) -> mx.array:
    # Normalised as mlx-lm does it, so that ties among rounded values break the same way.
    return logits - mx.logsumexp(logits, axis=-1, keepdims=True)
