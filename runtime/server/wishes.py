"""How a client wants tokens to be chosen, and what becomes of what it leaves open."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runtime.engine.frames import Sampling
from runtime.server.errors import refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.cluster.text import ModelText


@dataclass(frozen=True, slots=True)
class Wishes:
    """How tokens are chosen; None is what the model's author wants, or else nothing special."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None
    logprobs: int = -1

    def sampling(self, text: ModelText, bias_param: str) -> Sampling:
        """As the driver wants it. Raises :class:`ApiError` for a bias of no token."""
        own = text.sampling_defaults
        return Sampling(
            temperature=_first(self.temperature, own.get("temperature"), 1.0),
            top_p=_first(self.top_p, own.get("top_p"), 1.0),
            top_k=int(_first(self.top_k, own.get("top_k"), 0)),
            min_p=_first(self.min_p, own.get("min_p"), 0.0),
            repetition_penalty=_first(self.repetition_penalty, own.get("repetition_penalty"), 1.0),
            presence_penalty=self.presence_penalty or 0.0,
            frequency_penalty=self.frequency_penalty or 0.0,
            logit_bias=_bias(self.logit_bias, len(text.tokenizer), bias_param),
            seed=secrets.randbits(63) if self.seed is None else self.seed % (1 << 63),
            logprobs=self.logprobs,
        )


def _first(*values: Any) -> Any:
    return next(value for value in values if isinstance(value, int | float))


def _bias(given: Mapping[str, float], vocabulary_size: int, param: str) -> tuple[tuple[int, float], ...]:
    pairs = []
    for token, value in given.items():
        if not token.isascii() or not token.isdigit() or int(token) >= vocabulary_size or not -100 <= value <= 100:
            message = f"Invalid '{param}': '{token}: {value}' is no token id of this model with a bias of -100 to 100."
            raise refused(param, message)
        pairs.append((int(token), value))
    return tuple(pairs)
