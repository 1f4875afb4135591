"""The answers in progress: whose they are, how far they are, and what a new driver has to be told of them."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from runtime.cluster.messages import Throughput
from runtime.cluster.throughput import RateMeter
from runtime.engine.frames import Done, Generated, Mask, Prefilled, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.cluster.messages import FinishReason
    from runtime.engine.frames import AnyFrame, Submit, TokenLogprobs


class Outcome(NamedTuple):
    """The end of an answer, with what was measured by the controller."""

    finish_reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    """Of the prompt's tokens, those that were in the caches already."""
    completion_tokens: int
    ttft_seconds: float
    """From the request's arrival to its first token."""
    decode_tokens_per_second: float
    """Tokens after the first over the time since the first; 0 when there is only one."""


class Listener(Protocol):
    """Whoever waits for an answer. Called on the controller's loop; one of the last three is the last call."""

    def on_token(self, token: int, logprobs: TokenLogprobs | None) -> None:
        """One more token."""

    def on_end(self, outcome: Outcome) -> None:
        """That was all."""

    def on_refused(self, reason: str) -> None:
        """The driver will not answer this."""

    def on_broken(self, reason: str) -> None:
        """The session is over before the answer is."""


class Guide(Protocol):
    """Says token by token what may come next in one answer."""

    def take(self, token: int) -> None:
        """This one came."""

    def mask(self) -> bytes:
        """What may come now, as a mask of ``engine/frames.py``."""


class Answer:
    """A request that the driver works on, or will as soon as there is one."""

    def __init__(self, submit: Submit, listener: Listener, guide: Guide | None, arrived_seconds: float) -> None:
        self.submit = submit
        self.listener = listener
        self.guide = guide
        self.arrived_seconds = arrived_seconds
        self.first_token_seconds: float | None = None
        self.last_token_seconds = arrived_seconds
        self.tokens: list[int] = []
        self.prefilled_tokens = 0
        self.cached_tokens = 0
        self.masks_from = 0
        """How many tokens there were when the driver of now was told of this request: it counts masks from there."""

    @property
    def number(self) -> int:
        return self.submit.request

    @property
    def prompt_tokens(self) -> int:
        return len(self.submit.prompt)

    def outcome(self, reason: FinishReason) -> Outcome:
        """Its end, if that is now."""
        first = self.last_token_seconds if self.first_token_seconds is None else self.first_token_seconds
        decode_seconds = self.last_token_seconds - first
        return Outcome(
            finish_reason=reason,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=len(self.tokens),
            ttft_seconds=first - self.arrived_seconds,
            decode_tokens_per_second=(len(self.tokens) - 1) / decode_seconds if decode_seconds > 0 else 0.0,
        )

    def next_mask(self) -> Mask | None:
        """For a guided answer what its next token may be."""
        if self.guide is None:
            return None
        return Mask(self.number, len(self.tokens) - self.masks_from, self.guide.mask())


class Answers:
    """Every request without an end, by the number under which it was submitted.

    ``send_mask`` gets the mask of each token of guided answers, as soon as the token before it is known.
    """

    def __init__(self, send_mask: Callable[[Mask], None]) -> None:
        self._send_mask = send_mask
        self._answers: dict[int, Answer] = {}
        self._over = ""
        """Why there will be no answers any more; empty while there are."""
        self._next_number = 0
        self._decode_rate = RateMeter()
        self._prefill_rate = RateMeter()
        self._began_seconds = time.monotonic()
        self.begun = asyncio.Event()
        """A request began; whoever waits for that clears it."""
        self.last_sign_seconds = self._began_seconds
        """When the driver last said something, or was last given something to do."""

    @property
    def active(self) -> int:
        """Requests without an end."""
        return len(self._answers)

    def begin(self, submit: Submit, listener: Listener, guide: Guide | None, arrived_seconds: float) -> Answer:
        """Register a request; it gets the number that it goes under."""
        submit = msgspec.structs.replace(submit, request=self._next_number, masked=guide is not None)
        self._next_number += 1
        answer = Answer(submit, listener, guide, arrived_seconds)
        if self._over:
            listener.on_broken(self._over)
            return answer
        self._answers[submit.request] = answer
        self.begun.set()
        self.last_sign_seconds = time.monotonic()
        return answer

    def unfinished(self) -> list[Submit | Mask]:
        """What a new driver has to be told: each open request, its prompt with what was answered so far.

        An answer that has all its tokens, of which the last driver's word did not come any more, ends here.
        """
        frames: list[Submit | Mask] = []
        for number, answer in list(self._answers.items()):
            left = answer.submit.max_tokens - len(answer.tokens)
            if left <= 0:
                self._finish(number, "length")
                continue
            prompt = (*answer.submit.prompt, *answer.tokens)
            answer.masks_from = len(answer.tokens)
            frames.append(msgspec.structs.replace(answer.submit, prompt=prompt, max_tokens=left))
            if (mask := answer.next_mask()) is not None:
                frames.append(mask)
        return frames

    def cancel(self, number: int) -> None:
        """End an answer that no driver works on now."""
        if number in self._answers:
            self._finish(number, "cancelled")

    def has(self, number: int) -> bool:
        """Whether a request still runs."""
        return number in self._answers

    def break_off(self, reason: str) -> None:
        """The session is over: nobody gets an end any more, now or later."""
        self._over = reason
        while self._answers:
            self._answers.popitem()[1].listener.on_broken(reason)

    def take(self, frame: AnyFrame) -> None:
        """What the driver said."""
        now = self.last_sign_seconds = time.monotonic()
        match frame:
            case Generated(numbers, tokens, logprobs):
                self._decode_rate.add(now, len(tokens))
                reported = logprobs or (None,) * len(tokens)
                for number, token, its in zip(numbers, tokens, reported, strict=True):
                    self._on_token(number, token, its, now)
            case Prefilled(number, prompt_tokens, cached_tokens) if answer := self._answers.get(number):
                if not answer.tokens:  # afterwards it is done again on a rebuilt pipeline, answer included
                    answer.cached_tokens = cached_tokens
                self._prefill_rate.add(now, prompt_tokens - max(answer.prefilled_tokens, cached_tokens))
                answer.prefilled_tokens = prompt_tokens
            case Done(number, reason) if number in self._answers:
                self._finish(number, reason)
            case Refused(number, reason) if answer := self._answers.get(number):
                if answer.tokens:  # on a rebuilt pipeline there is no room any more to go on
                    self._finish(number, "length")
                else:
                    del self._answers[number]
                    answer.listener.on_refused(reason)

    def _finish(self, number: int, reason: FinishReason) -> None:
        answer = self._answers.pop(number)
        answer.listener.on_end(answer.outcome(reason))

    def _on_token(self, number: int, token: int, logprobs: TokenLogprobs | None, now: float) -> None:
        answer = self._answers.get(number)
        if answer is None:
            return
        if answer.first_token_seconds is None:
            answer.first_token_seconds = now
        answer.last_token_seconds = now
        answer.tokens.append(token)
        if answer.guide is not None:
            answer.guide.take(token)
            if (mask := answer.next_mask()) is not None:
                self._send_mask(mask)
        answer.listener.on_token(token, logprobs)

    def throughput(self) -> Throughput:
        """The rates of the last second."""
        now = time.monotonic()
        return Throughput(
            time_seconds=now - self._began_seconds,
            decode_tokens_per_second=self._decode_rate.per_second(now),
            prefill_tokens_per_second=self._prefill_rate.per_second(now),
            active_requests=self.active,
        )
