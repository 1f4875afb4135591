"""Made-up logs and measurements of the real types, for pictures of their panes and for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.agent.job_logs import JobSeen, NodeLogs, RankLog
from runtime.bench.order import RoundDone
from runtime.bench.table import Round, StageTime, measured
from runtime.cluster.job_logs import LogsOfNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.bench.order import BenchOrder
    from runtime.bench.table import Measured
    from runtime.cluster.messages import RankHeld

NEWEST, EARLIER = "7c1e90ab34d25f68", "02b4d6f81a3c5e79"
_JOBS = (JobSeen(NEWEST, 1_795_993_140.0), JobSeen(EARLIER, 1_795_989_000.0))
_DAY = "2026-11-29 22:59"
_WORKER, _SWITCH = "runtime.engine.worker", "runtime.engine.switchboard"


def logs() -> tuple[LogsOfNode, ...]:
    """A job on three nodes, one of which lost a hop; a fourth node does not answer."""
    return (
        _node(
            "Virtual A",
            0,
            f"{_DAY}:02,118 INFO {_WORKER} epoch 0, stage 0: layers 0 to 4; connects",
            f"{_DAY}:03,870 INFO {_WORKER} ready: read 43.2 MB, holds 43.2 MB",
            f"{_DAY}:41,002 WARNING {_WORKER} epoch 0 lost a hop: Virtual B closed its connection",
            f"{_DAY}:41,377 INFO {_WORKER} epoch 1, stage 0: layers 0 to 13; connects",
            f"{_DAY}:42,960 INFO {_WORKER} ready: read 25.9 MB, holds 69.1 MB",
        ),
        _node(
            "Virtual B",
            1,
            f"{_DAY}:02,131 INFO {_WORKER} epoch 0, stage 1: layers 5 to 22; connects",
            f"{_DAY}:04,015 INFO {_WORKER} ready: read 52.6 MB, holds 52.6 MB",
            f"{_DAY}:20,544 WARNING {_SWITCH} refused ('192.168.1.23', 39686): a caller is not on a node of this job",
            f"{_DAY}:40,990 ERROR {_WORKER} this rank failed",
            "Traceback (most recent call last):",
            '  File "/Applications/Pomona.app/runtime/engine/worker.py", line 96, in run',
            "    self._serve()",
            "MemoryError: [metal::malloc] 2.1 GB were asked for, and 1.7 GB are free",
        ),
        _node(
            "Virtual C",
            2,
            f"{_DAY}:02,127 INFO {_WORKER} epoch 0, stage 2: layers 23 to 29; connects",
            f"{_DAY}:03,954 INFO {_WORKER} ready: read 48.7 MB, holds 48.7 MB",
            f"{_DAY}:41,006 WARNING {_WORKER} epoch 0 lost a hop: Virtual B closed its connection",
            f"{_DAY}:41,379 INFO {_WORKER} epoch 1, stage 1: layers 14 to 29; connects",
            f"{_DAY}:42,988 INFO {_WORKER} ready: read 26.1 MB, holds 74.8 MB",
        ),
        LogsOfNode("attic", "Studio in the attic", trouble="it does not answer"),
    )


def _node(name: str, rank: int, *lines: str) -> LogsOfNode:
    ranks = (RankLog(f"{NEWEST}-rank{rank}", "\n".join([*lines, ""])),)
    return LogsOfNode(name.lower().replace(" ", "-"), name, NodeLogs(ranks, _JOBS))


def bench(ranks: Sequence[RankHeld], order: BenchOrder) -> Iterator[RoundDone | Measured]:
    """Rounds and rows of a session whose stages take 0.8 ms for a layer, half as much more for each other client."""
    layers = [rank.last_layer - rank.first_layer + 1 for rank in ranks]
    for prompt in order.prompt_tokens:
        for clients in order.concurrency:
            width = 1 + 0.5 * (clients - 1)
            step = 0.0008 * sum(layers) * width + 0.0006 * len(layers) + 0.0002 * max(layers)
            rounds, stages = [], []
            for number in range(order.repeats + 1):
                step_now = step * (1 + 0.007 * ((number * 2) % 3 - 1))
                first = 0.0007 * prompt * clients + step_now
                decode = step_now * (order.answer_tokens - 1)
                total = clients * order.answer_tokens / (first + decode)
                if number:
                    rounds.append(Round(first + decode, (first,) * clients, (decode,) * clients))
                    stages += [
                        StageTime(
                            rank.node_name,
                            rank.first_layer,
                            rank.last_layer,
                            0.0008 * count * width,
                            step_now - 0.0008 * count * width,
                            0.0001,
                        )
                        for rank, count in zip(ranks, layers, strict=True)
                    ]
                yield RoundDone(prompt, clients, number, total)
            yield measured(prompt, order.answer_tokens, clients, rounds, stages)
