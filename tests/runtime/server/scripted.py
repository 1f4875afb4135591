"""A session that says what a test tells it to, behind the real API: for what real ranks do not do on demand."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runtime.cluster.answers import Answer
from runtime.cluster.health import Health, RankHealth
from runtime.engine.frames import TokenLogprobs
from runtime.server.application import ApiServer
from runtime.server.options import ApiOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from runtime.cluster.answers import Guide, Listener
    from runtime.cluster.text import ModelText
    from runtime.engine.frames import Submit

NAME = "scripted"


@dataclass
class Scripted:
    """Is its own ``requests`` and ``answers``. Every answer says ``tokens``, then ends, hangs or breaks."""

    text: ModelText | None
    tokens: Sequence[int] = ()
    then: str = "end"
    """``end``, ``hang``, or why the session is over."""
    status: Any = "ok"
    context_tokens: int = 8192
    model_names: tuple[str, ...] = (NAME,)
    submits: list[Submit] = field(default_factory=list)
    ended: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    """Released whenever an answer is given up, or over."""
    active: int = 0

    @property
    def requests(self) -> Any:
        return self

    @property
    def answers(self) -> Any:
        return self

    def health(self) -> Health:
        return Health(self.status, "", self.active, (RankHealth(0, "Apricot", "ready", 3, 0.1),))

    def begin(self, submit: Submit, listener: Listener, guide: Guide | None = None) -> Answer:
        answer = Answer(submit, listener, guide, 0.0)
        self.submits.append(submit)
        asyncio.get_running_loop().call_soon(self._say, answer)
        return answer

    def end(self, answer: Answer) -> None:
        self.ended.release()

    def _say(self, answer: Answer) -> None:
        for wanted in self.tokens:
            token = wanted
            if answer.guide is not None:
                token = _allowed(answer.guide.mask(), wanted)
                if token in answer.submit.end_tokens:
                    break
                answer.guide.take(token)
            answer.tokens.append(token)
            wants = answer.submit.sampling.logprobs >= 0
            answer.listener.on_token(token, TokenLogprobs(-0.5, ((token, -0.5),)) if wants else None)
        if self.then == "end":
            answer.listener.on_end(answer.outcome("stop"))
        elif self.then != "hang":
            answer.listener.on_broken(self.then)


def _allowed(mask: bytes, wanted: int) -> int:
    """What was wanted if it may come, else the first that may."""
    if not mask or (wanted // 8 < len(mask) and mask[wanted // 8] >> wanted % 8 & 1):
        return wanted
    return next(index * 8 + bit for index, byte in enumerate(mask) for bit in range(8) if byte >> bit & 1)


@asynccontextmanager
async def api(session: Scripted, **options: Any) -> AsyncIterator[str]:
    """The address of the API in front of ``session``."""
    server = ApiServer(session, ApiOptions(port=0, **options))
    await server.open()
    try:
        yield server.address
    finally:
        await server.close()
