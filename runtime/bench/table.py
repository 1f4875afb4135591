"""What a benchmark measured, as numbers and as tables. Pure."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Round(msgspec.Struct, frozen=True):
    """Some clients at once, each with one answer."""

    seconds: float
    """From the first question to the last token of all."""
    first_token_seconds: tuple[float, ...]
    decode_seconds: tuple[float, ...]
    """Of each answer after its first token."""


class Spread(msgspec.Struct, frozen=True):
    """Several measurements of one thing."""

    median: float
    least: float
    most: float


class StageTime(msgspec.Struct, frozen=True):
    """One rank, in seconds for a step of whatever width."""

    node: str
    first_layer: int
    last_layer: int
    compute_seconds: float
    wait_seconds: float
    send_seconds: float


class Measured(msgspec.Struct, frozen=True):
    """One row."""

    split: str
    prompt_tokens: int
    answer_tokens: int
    clients: int
    ttft_seconds: Spread
    prefill_tokens_per_second: Spread
    """Tokens of all prompts over the time until every client has its first token."""
    decode_tokens_per_second: Spread
    """Of one client."""
    total_tokens_per_second: Spread
    """All tokens that were answered over the whole time, prompts included."""
    stages: tuple[StageTime, ...]


def measured(
    prompt_tokens: int, answer_tokens: int, clients: int, rounds: Sequence[Round], stages: Sequence[StageTime]
) -> Measured:
    """A row from its rounds; ``stages`` has those of every round."""
    by_place: dict[tuple[str, int, int], list[StageTime]] = {}
    for stage in stages:
        by_place.setdefault((stage.node, stage.first_layer, stage.last_layer), []).append(stage)
    medians = tuple(
        StageTime(
            *place,
            statistics.median(one.compute_seconds for one in its),
            statistics.median(one.wait_seconds for one in its),
            statistics.median(one.send_seconds for one in its),
        )
        for place, its in by_place.items()
    )
    return Measured(
        ",".join(f"{stage.node} {stage.last_layer - stage.first_layer + 1}" for stage in medians),
        prompt_tokens,
        answer_tokens,
        clients,
        _spread(first for one in rounds for first in one.first_token_seconds),
        _spread(clients * prompt_tokens / max(one.first_token_seconds) for one in rounds),
        _spread((answer_tokens - 1) / max(seconds, 1e-9) for one in rounds for seconds in one.decode_seconds),
        _spread(clients * answer_tokens / one.seconds for one in rounds),
        medians,
    )


def _spread(values: Iterable[float]) -> Spread:
    known = list(values)
    return Spread(statistics.median(known), min(known), max(known))


_HEAD = ("split", "prompt", "clients", "first token s", "prefill tok/s", "decode tok/s", "total tok/s", "stages ms")


def _cells(row: Measured) -> tuple[str, ...]:
    def shown(spread: Spread, digits: int) -> str:
        return f"{spread.median:.{digits}f} ({spread.least:.{digits}f} to {spread.most:.{digits}f})"

    return (
        row.split,
        str(row.prompt_tokens),
        str(row.clients),
        shown(row.ttft_seconds, 2),
        shown(row.prefill_tokens_per_second, 0),
        shown(row.decode_tokens_per_second, 1),
        shown(row.total_tokens_per_second, 1),
        " + ".join(f"{stage.compute_seconds * 1000:.1f}" for stage in row.stages),
    )


def text_lines(rows: Sequence[Measured]) -> list[str]:
    """A table for the terminal: medians with their spread."""
    table = [_HEAD, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEAD))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]


def markdown_lines(rows: Sequence[Measured]) -> list[str]:
    """The same for a page."""
    lines = [_HEAD, tuple("---" for _ in _HEAD), *map(_cells, rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def csv_lines(rows: Sequence[Measured]) -> list[str]:
    """Numbers alone; a split is quoted because it has commas."""
    spreads = ("ttft_seconds", "prefill_tokens_per_second", "decode_tokens_per_second", "total_tokens_per_second")
    names = [f"{name}_{part}" for name in spreads for part in ("median", "least", "most")]
    lines = [",".join(("split", "prompt_tokens", "answer_tokens", "clients", *names))]
    for row in rows:
        numbers = [f"{value:.4f}" for name in spreads for value in msgspec.structs.astuple(getattr(row, name))]
        lines.append(
            ",".join((f'"{row.split}"', str(row.prompt_tokens), str(row.answer_tokens), str(row.clients), *numbers))
        )
    return lines
