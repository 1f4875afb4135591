"""The answers in progress: tokens become text, and what a person waits for is measured."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from runtime.cluster.messages import Finished, Rejected, Text, Throughput
from runtime.cluster.throughput import RateMeter
from runtime.engine.frames import Done, Generated, Prefilled, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.cluster.messages import FinishReason, ServerMessage
    from runtime.cluster.text import TextStream
    from runtime.engine.frames import AnyFrame, Submit


class _Answer:
    def __init__(self, request_id: str, submit: Submit, stream: TextStream, arrived_seconds: float) -> None:
        self.request_id = request_id
        self.submit = submit
        self.stream = stream
        self.arrived_seconds = arrived_seconds
        self.first_token_seconds: float | None = None
        self.last_token_seconds = arrived_seconds
        self.tokens: list[int] = []
        self.prefilled_tokens = 0
        self.cached_tokens = 0

    @property
    def prompt_tokens(self) -> int:
        return len(self.submit.prompt)

    def finished(self, reason: FinishReason) -> Finished:
        first = self.last_token_seconds if self.first_token_seconds is None else self.first_token_seconds
        decode_seconds = self.last_token_seconds - first
        return Finished(
            request_id=self.request_id,
            finish_reason=reason,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=len(self.tokens),
            ttft_seconds=first - self.arrived_seconds,
            decode_tokens_per_second=(len(self.tokens) - 1) / decode_seconds if decode_seconds > 0 else 0.0,
        )


class Answers:
    """Every request that the driver works on, by the number under which it was submitted."""

    def __init__(self, publish: Callable[[ServerMessage], None]) -> None:
        self._publish = publish
        self._answers: dict[int, _Answer] = {}
        self._numbers: dict[str, int] = {}
        self._next_number = 0
        self._decode_rate = RateMeter()
        self._prefill_rate = RateMeter()
        self._began_seconds = time.monotonic()
        self.last_sign_seconds = self._began_seconds
        """When the driver last said something, or was last given something to do."""

    @property
    def active(self) -> int:
        """Requests without an end."""
        return len(self._answers)

    def begin(self, request_id: str, submit: Submit, stream: TextStream, arrived_seconds: float) -> Submit:
        """Register a request; returns ``submit`` with the number that it goes under."""
        number = self._next_number
        self._next_number += 1
        submit = msgspec.structs.replace(submit, request=number)
        self._answers[number] = _Answer(request_id, submit, stream, arrived_seconds)
        self._numbers[request_id] = number
        self.last_sign_seconds = time.monotonic()
        return submit

    def unfinished(self) -> list[Submit]:
        """What a new driver has to be told: each open request, its prompt with what was answered so far.

        An answer that has all its tokens, of which the last driver's word did not come any more, ends here.
        """
        submits: list[Submit] = []
        for number, answer in list(self._answers.items()):
            left = answer.submit.max_tokens - len(answer.tokens)
            if left > 0:
                prompt = (*answer.submit.prompt, *answer.tokens)
                submits.append(msgspec.structs.replace(answer.submit, prompt=prompt, max_tokens=left))
            else:
                self._finish(number, "length")
        return submits

    def cancel(self, number: int) -> None:
        """End an answer that no driver works on now."""
        if number in self._answers:
            self._finish(number, "cancelled")

    def number_of(self, request_id: str) -> int | None:
        """The number of a request that still runs."""
        return self._numbers.get(request_id)

    def take(self, frame: AnyFrame) -> None:
        """What the driver said."""
        now = self.last_sign_seconds = time.monotonic()
        match frame:
            case Generated(numbers, tokens):
                self._decode_rate.add(now, len(tokens))
                for number, token in zip(numbers, tokens, strict=True):
                    self._on_token(number, token, now)
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
                    del self._answers[number], self._numbers[answer.request_id]
                    self._publish(Rejected(answer.request_id, reason))

    def _finish(self, number: int, reason: FinishReason) -> None:
        answer = self._answers.pop(number)
        del self._numbers[answer.request_id]
        if rest := answer.stream.finish():
            self._publish(Text(answer.request_id, rest, ()))
        self._publish(answer.finished(reason))

    def _on_token(self, number: int, token: int, now: float) -> None:
        answer = self._answers.get(number)
        if answer is None:
            return
        if answer.first_token_seconds is None:
            answer.first_token_seconds = now
        answer.last_token_seconds = now
        answer.tokens.append(token)
        self._publish(Text(answer.request_id, answer.stream.add(token), (token,)))

    def throughput(self) -> Throughput:
        """The rates of the last second."""
        now = time.monotonic()
        return Throughput(
            time_seconds=now - self._began_seconds,
            decode_tokens_per_second=self._decode_rate.per_second(now),
            prefill_tokens_per_second=self._prefill_rate.per_second(now),
            active_requests=self.active,
        )
