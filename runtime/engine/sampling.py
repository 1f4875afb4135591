"""The next token from the logits.

One sampler for each sequence, with a random state of its own: a seeded request gives the same text whatever else runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import mlx.core as mx
from mlx_lm.sample_utils import apply_top_p

if TYPE_CHECKING:
    from runtime.engine.frames import Sampling


class Sampler:
    """Chooses a token from logits of shape (1, vocabulary)."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._key = mx.random.key(sampling.seed)

    def __call__(self, logits: mx.array) -> mx.array:
        """The token, shape (1,), not yet evaluated."""
        # Normalised as mlx-lm does it, so that ties among rounded values break the same way.
        logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
        if self._sampling.temperature == 0:
            return mx.argmax(logprobs, axis=-1)
        if self._sampling.top_p < 1:
            logprobs = apply_top_p(logprobs, self._sampling.top_p)
        self._key, key = mx.random.split(self._key)
        return mx.random.categorical(logprobs / self._sampling.temperature, axis=-1, key=key)
