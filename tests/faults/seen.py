"""What a front end sees when something goes wrong in the middle of an answer."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.cluster.messages import Chat, ChatMessage, Ending, Failed, Finished, Ready, Recovering, Rejected, Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.running import Running

QUESTION = "Write a story about a fox."
TOKENS = 16
WAIT_SECONDS = 300.0


@dataclass
class Seen:
    """Times are from the harm on."""

    tokens: list[int] = field(default_factory=list)
    noticed_seconds: float | None = None
    over_seconds: float = 0.0
    reasons: list[str] = field(default_factory=list)
    """What was told, a sentence each."""
    node_ids: list[str | None] = field(default_factory=list)
    finished: bool = False
    """Whether the answer came to its end."""
    failed: str = ""
    """How the session ended, if it did."""


async def answer(
    running: Running,
    harm: Callable[[], None] | None = None,
    *,
    after_tokens: int = 3,
    request_id: str = "story",
    question: str = QUESTION,
    breaks: bool = True,
) -> Seen:
    """Ask, do ``harm`` when so many tokens have come (0: before anything is asked), and look on until it is over.

    That is when the answer has ended and, after a harm that ``breaks`` something, the session is ready again.
    """
    seen = Seen()
    harmed_seconds = time.monotonic()
    rebuilding = breaks and harm is not None
    if harm is not None and after_tokens == 0:
        harm()
        harm = None
    await running.client.send(Chat(request_id, (ChatMessage("user", question),), TOKENS))
    async with asyncio.timeout(WAIT_SECONDS):
        while not seen.failed and not (seen.finished and not rebuilding):
            event = await running.next_of(Text, Finished, Rejected, Recovering, Ready, Ending, Failed)
            now = time.monotonic()
            match event:
                case Text():
                    seen.tokens += event.token_ids
                    if harm is not None and len(seen.tokens) >= after_tokens:
                        harm()
                        harm, harmed_seconds = None, time.monotonic()
                case Finished():
                    seen.finished = True
                case Recovering(reason, node_id) | Ending(reason, node_id):
                    seen.noticed_seconds = seen.noticed_seconds or now - harmed_seconds
                    seen.reasons.append(reason)
                    seen.node_ids.append(node_id)
                    rebuilding = isinstance(event, Recovering)
                case Ready():
                    running.ready, rebuilding = event, False
                case Failed(reason):
                    seen.noticed_seconds = seen.noticed_seconds or now - harmed_seconds
                    seen.failed = reason
                case _:
                    raise AssertionError(event)
            seen.over_seconds = now - harmed_seconds
    return seen
