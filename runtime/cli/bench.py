"""``pomona bench``: how fast a model is where it runs, over the same API that programs use."""

from __future__ import annotations

import asyncio
import secrets
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from runtime.bench.measure import measure
from runtime.bench.order import BenchOrder, RoundDone
from runtime.bench.table import Measured, csv_lines, markdown_lines, text_lines
from runtime.cli.demo import run_until_over
from runtime.cli.place import note, placed
from runtime.cli.progress import Progress
from runtime.cluster.client import SessionClient
from runtime.cluster.messages import Ready, Statistics
from runtime.errors import PomonaError
from runtime.planning.plan import even_split
from runtime.server.options import ApiOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from runtime.cli.place import Place, PlaceOptions
    from runtime.cluster.messages import ServerMessage, StageTimes
    from runtime.engine.orders import HopKind


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to measure, as asked for on the command line."""

    place: PlaceOptions
    order: BenchOrder
    compare_even: bool = False
    hops: HopKind = "tls"
    form: str = "text"
    """``text``, ``json``, ``markdown`` or ``csv``."""


def run_bench(options: BenchOptions) -> int:
    """Measure, print a table, and return the exit status. Raises :class:`PomonaError`."""
    return run_until_over(_run(options))


async def _run(options: BenchOptions) -> int:
    async with placed(options.place) as place:
        rows = await _split_rows(place, None, options)
        if options.compare_even:
            layers, count = len(place.layout.layer_bytes), len(place.nodes)
            rows += await _split_rows(place, tuple(even_split(layers, count)), options)
    match options.form:
        case "json":
            lines = [msgspec.json.encode(rows).decode()]
        case "csv":
            lines = csv_lines(rows)
        case "markdown":
            lines = markdown_lines(rows)
        case _:
            lines = text_lines(rows)
    sys.stdout.write("\n".join([*lines, ""]))
    return 0


async def _split_rows(place: Place, split: Sequence[int] | None, options: BenchOptions) -> list[Measured]:
    """Every prompt length with every number of clients, on one split."""
    order = options.order
    plan = place.plan(split)
    if (reason := order.too_long(plan.context_tokens)) is not None:
        raise PomonaError(f"{reason}; --context allows more.")
    client = await SessionClient.start(
        plan,
        place.folder,
        place.nodes,
        place.home,
        keep_running=False,
        hops=options.hops,
        folder_on=place.folder_on,
        api=ApiOptions(port=0, api_key=secrets.token_urlsafe(16)),
    )
    try:
        events = client.events()
        progress = Progress()
        ready = await progress.until_ready(events)
        if not isinstance(ready, Ready) or progress.serving is None:
            raise PomonaError("The model did not start, so nothing was measured.")
        counted = _Counted()
        watching = asyncio.create_task(counted.watch(events), name="statistics")
        try:
            rows = []
            async for told in measure(progress.serving, ready.ranks, place.folder, order, lambda: counted.stages):
                if isinstance(told, RoundDone):
                    _note_round(told)
                else:
                    rows.append(told)
            return rows
        finally:
            watching.cancel()
    finally:
        await client.close()


def _note_round(done: RoundDone) -> None:
    which = f"round {done.number}" if done.number else "warm-up"
    note(f"prompt {done.prompt_tokens}, {done.clients} at once, {which}: {done.tokens_per_second:.1f}")


class _Counted:
    """What the ranks have counted by now."""

    def __init__(self) -> None:
        self.stages: tuple[StageTimes, ...] = ()

    async def watch(self, events: AsyncIterator[ServerMessage]) -> None:
        """Keep the newest. A session that fails breaks its answers off, which is where that is told."""
        async for event in events:
            if isinstance(event, Statistics):
                self.stages = event.stages
