"""What a benchmark is asked to measure, and what it says on its way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BenchOrder:
    """What to measure: every prompt length with every number of clients."""

    prompt_tokens: tuple[int, ...] = (512,)
    answer_tokens: int = 128
    concurrency: tuple[int, ...] = (1,)
    repeats: int = 3

    @property
    def round_count(self) -> int:
        """Of all rows; each begins with one that warms up."""
        return len(self.prompt_tokens) * len(self.concurrency) * (self.repeats + 1)

    def too_long(self, context_tokens: int) -> str | None:
        """Why a plan with this context has no room for it, or None."""
        longest = max(self.prompt_tokens) + self.answer_tokens
        if not context_tokens or longest <= context_tokens:
            return None
        return f"Prompt and answer have {longest} tokens, and the plan has room for {context_tokens}"


@dataclass(frozen=True, slots=True)
class RoundDone:
    """One round is over."""

    prompt_tokens: int
    clients: int
    number: int
    """Of its row; 0 only warms up."""
    tokens_per_second: float
    """All tokens that were answered over the whole time."""
