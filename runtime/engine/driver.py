"""The driver: stage 0 decides what every stage does next. It alone schedules, and it knows every token."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.engine.frames import (
    CancelRequest,
    Done,
    Drop,
    Generated,
    Open,
    Prefilled,
    Step,
    StopReason,
    Submit,
    Token,
)
from runtime.engine.hop import HopError
from runtime.engine.mailbox import Leave, Lost

if TYPE_CHECKING:
    from runtime.engine.mailbox import Arrival, Inbox, Outbox
    from runtime.engine.rank import Rank

PREFILL_CHUNK_TOKENS = 128
"""Small enough that the stages of a pipeline work on one prompt at the same time, large enough for full matrices."""


@dataclass(slots=True)
class _Request:
    """One request on its way. ``position`` tokens have gone through the driver's stage."""

    submit: Submit
    position: int = 0
    generated: int = 0
    next_tokens: deque[int] = field(default_factory=deque)
    """Tokens that are known but not yet in the caches: the rest of the prompt, or the newest token."""

    def take(self) -> tuple[int, ...]:
        """The tokens of the next step. The last prompt token goes alone: only its logits are wanted (as in mlx-lm)."""
        count = min(PREFILL_CHUNK_TOKENS, len(self.next_tokens) - 1) or 1
        return tuple(self.next_tokens.popleft() for _ in range(count))


class Driver:
    """Runs requests as sequences of steps, round robin, each sequence a micro-batch of its own in the pipeline."""

    def __init__(self, rank: Rank, inbox: Inbox, events: Outbox) -> None:
        self._rank = rank
        self._inbox = inbox
        self._events = events
        self._requests: dict[int, _Request] = {}
        self._runnable: deque[int] = deque()

    def run(self) -> None:
        """Serve until the agent says leave. Raises :class:`HopError` when a hop is lost."""
        while True:
            item = self._inbox.get_nowait() if self._runnable else self._inbox.get()
            if isinstance(item, Leave):
                return
            if isinstance(item, Lost):
                raise item.error
            if item is not None:
                self._take(item)
            elif self._runnable:
                self._step(self._runnable.popleft())

    def _take(self, arrival: Arrival) -> None:
        match arrival.frame:
            case Submit() as submit:
                self._begin(submit)
            case CancelRequest(request):
                if request in self._requests:
                    self._end(request, "cancelled")
            case Token(sequence, token):
                self._on_token(sequence, token)
            case frame:
                raise HopError(f"a {type(frame).__name__} frame came to the driver")

    def _begin(self, submit: Submit) -> None:
        if submit.request in self._requests or not submit.prompt:
            raise HopError(f"request {submit.request} is empty or runs already")
        self._requests[submit.request] = _Request(submit, next_tokens=deque(submit.prompt))
        self._rank.apply(Open(submit.request, submit.sampling))
        self._runnable.append(submit.request)

    def _step(self, number: int) -> None:
        request = self._requests.get(number)
        if request is None:  # cancelled while it waited for its turn
            return
        tokens = request.take()
        wants_token = not request.next_tokens
        token = self._rank.apply(Step(number, request.position, tokens, sample=wants_token, dtype="float32", shape=()))
        request.position += len(tokens)
        if not request.generated:
            self._events.put(Prefilled(number, request.position))
        if token is not None:  # one stage alone: the token is here already
            self._on_token(number, token.token)
        elif not wants_token:
            self._runnable.append(number)

    def _on_token(self, number: int, token: int) -> None:
        request = self._requests.get(number)
        if request is None:  # cancelled while the step was in flight
            return
        if token in request.submit.end_tokens:
            self._end(number, "stop")
            return
        request.generated += 1
        self._events.put(Generated(number, token))
        if request.generated >= request.submit.max_tokens:
            self._end(number, "length")
            return
        request.next_tokens.append(token)
        self._runnable.append(number)

    def _end(self, number: int, reason: StopReason) -> None:
        del self._requests[number]
        self._rank.apply(Drop(number))
        self._events.put(Done(number, reason))
