"""Tiny models over real workers: plans for them, and what the driver answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from runtime.engine.frames import Done, Generated, Prefilled, Refused
from runtime.planning.plan import Plan, RankPlan, StagePlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.cluster.local_ranks import LocalRanks
    from runtime.engine.frames import AnyFrame, Submit

FRAME_SECONDS = 60
HYBRID, SLIDING = "qwen3-next, linear and full attention", "gemma3, sliding windows"


def plan(split: Sequence[int], ranks_in_stage: int = 1) -> Plan:
    """A plan for a tiny model; its stages are groups of ``ranks_in_stage`` ranks."""
    stages = []
    first = 0
    for stage, count in enumerate(split):
        ranks = tuple(RankPlan(f"{stage}.{rank}", f"{stage}.{rank}", 0) for rank in range(ranks_in_stage))
        stages.append(StagePlan(first, first + count - 1, ranks))
        first += count
    return Plan("tiny", "pipeline" if ranks_in_stage == 1 else "tensor", first, tuple(stages))


async def next_frame(ranks: LocalRanks) -> AnyFrame:
    """What the driver says next; fails if it says nothing."""
    async with asyncio.timeout(FRAME_SECONDS):
        return await ranks.next_frame()


class Answers:
    """What came back for some requests."""

    def __init__(self) -> None:
        self.tokens: dict[int, list[int]] = {}
        self.cached: dict[int, int] = {}
        self.ended: dict[int, str] = {}

    def take(self, frame: AnyFrame) -> None:
        match frame:
            case Generated(requests, tokens):
                for request, token in zip(requests, tokens, strict=True):
                    assert request not in self.ended, "a token after the end"
                    self.tokens[request].append(token)
            case Prefilled(request, _, cached_tokens):
                self.cached[request] = cached_tokens
            case Done(request, reason):
                self.ended[request] = reason
            case Refused(request, reason):
                self.ended[request] = f"refused: {reason}"
            case _:
                raise AssertionError(frame)


async def ask(ranks: LocalRanks, *submits: Submit) -> Answers:
    """Submit all at once and wait for their ends."""
    answers = Answers()
    for submit in submits:
        answers.tokens[submit.request] = []
        await ranks.send(submit)
    while len(answers.ended) < len(submits):
        answers.take(await next_frame(ranks))
    return answers
