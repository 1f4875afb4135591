"""A benchmark in words and figures: its table, its progress, and which of two splits is faster. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gui.formatting import seconds_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from runtime.bench.order import BenchOrder, RoundDone
    from runtime.bench.table import Measured, Spread

HEADS = ("Split", "Prompt", "At once", "First token", "Prefill", "Decode", "Total")
HEAD_TIPS = (
    "Layers of each node, and what its stage computes for a step",
    "Tokens of each prompt",
    "Clients that ask at the same time",
    "From the question to its first token",
    "Tokens of all prompts, until every client has its first token; a second",
    "Tokens of one answer, a second",
    "Tokens of all answers over the whole time, prompts included; a second",
)
_MOST_NUMBER = 1 << 24
_SEEN = 1.01
"""What is nearer than a hundredth is alike, however little the rounds vary."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure, and below it how far the rounds lie apart."""

    figure: str
    below: str = ""
    best: bool = False
    """Faster than every other split of the table at the same prompt and clients, by more than the rounds vary."""

    @property
    def words(self) -> str:
        spread = f"{self.figure} ({self.below})" if self.below else self.figure
        return f"{spread}, fastest" if self.best else spread


def read_numbers(text: str) -> tuple[int, ...] | None:
    """Whole numbers from 1 on, as ``512, 4096``; None if it is anything else."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part) <= _MOST_NUMBER for part in parts):
        return None
    return tuple(map(int, parts))


def split_words(row: Measured) -> str:
    """Layers of each stage: ``5 | 18 | 7``."""
    return " | ".join(str(stage.last_layer - stage.first_layer + 1) for stage in row.stages)


def cells(row: Measured, rows: Sequence[Measured]) -> tuple[Cell, ...]:
    """A row of the table; ``rows`` are all of it, to see what is best."""
    rivals = [one for one in rows if _same_question(one, row) and one.split != row.split]
    stages = " + ".join(f"{stage.compute_seconds * 1000:.1f}" for stage in row.stages)
    return (
        Cell(split_words(row), f"{stages} ms"),
        Cell(f"{row.prompt_tokens:,}"),
        Cell(str(row.clients)),
        _lower(row.ttft_seconds, [one.ttft_seconds for one in rivals]),
        _higher(row.prefill_tokens_per_second, [one.prefill_tokens_per_second for one in rivals]),
        _higher(row.decode_tokens_per_second, [one.decode_tokens_per_second for one in rivals]),
        _higher(row.total_tokens_per_second, [one.total_tokens_per_second for one in rivals]),
    )


def stage_words(row: Measured) -> str:
    """What each stage took for a step, a line for each."""
    return "\n".join(
        f"{stage.node}: computes {stage.compute_seconds * 1000:.1f} ms, waits {stage.wait_seconds * 1000:.1f} ms, "
        f"sends {stage.send_seconds * 1000:.1f} ms for a step"
        for stage in row.stages
    )


def compared_words(before: Measured, after: Measured) -> str:
    """``10 | 10 | 10 decodes 12 % faster than 5 | 18 | 7``; or that the rounds vary more than the splits differ."""
    one, other = before.decode_tokens_per_second, after.decode_tokens_per_second
    names = (split_words(after), split_words(before))
    if one.least <= other.most and other.least <= one.most:
        return f"{names[0]} and {names[1]} decode alike: the rounds vary more than the splits differ."
    gain = other.median / one.median - 1
    return f"{names[0]} decodes {abs(gain):.0%} {'faster' if gain > 0 else 'slower'} than {names[1]}."


def round_words(done: RoundDone, number: int, order: BenchOrder, seconds: float) -> str:
    """How far it is: ``Round 3 of 8 · prompt 512, 4 at once · 31.0 tok/s · about 40 s left``."""
    left = seconds / number * (order.round_count - number)
    what = f"prompt {done.prompt_tokens:,}, {done.clients} at once"
    rate = "warm-up" if done.number == 0 else f"{done.tokens_per_second:.1f} tok/s in all"
    rest = f" · about {seconds_words(left)} left" if left >= 1 else ""
    return f"Round {number} of {order.round_count} · {what} · {rate}{rest}"


def _same_question(one: Measured, other: Measured) -> bool:
    return (one.prompt_tokens, one.answer_tokens, one.clients) == (
        other.prompt_tokens,
        other.answer_tokens,
        other.clients,
    )


def _lower(spread: Spread, rivals: Iterable[Spread]) -> Cell:
    known = list(rivals)
    best = bool(known) and all(spread.most * _SEEN < other.least for other in known)
    return Cell(f"{_seconds(spread.median)} s", f"{_range(spread, _seconds)} s", best)


def _higher(spread: Spread, rivals: Iterable[Spread]) -> Cell:
    known = list(rivals)
    best = bool(known) and all(spread.least > other.most * _SEEN for other in known)
    return Cell(_rate(spread.median), _range(spread, _rate), best)


def _range(spread: Spread, word: Callable[[float], str]) -> str:
    least, most = word(spread.least), word(spread.most)
    return least if least == most else f"{least}–{most}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.1f}"


def _rate(tokens_per_second: float) -> str:
    return f"{tokens_per_second:,.0f}" if tokens_per_second >= 100 else f"{tokens_per_second:.1f}"
