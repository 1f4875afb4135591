"""The driver: stage 0 decides what every stage does next. It alone schedules, and it knows every token.

Prompts go down the pipeline in chunks, so that all stages work on one prompt at a time; sequences that decode go in
groups, as many groups in flight as pay (schedule.py). A chunk follows only when every group has had a step since the
last one, so no answer waits for more than one chunk.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.engine.frames import (
    CancelRequest,
    Done,
    Drop,
    Generated,
    Logits,
    Open,
    Prefilled,
    Prefix,
    Step,
    Stepped,
    Submit,
)
from runtime.engine.groups import Group, Groups
from runtime.engine.hop import HopError
from runtime.engine.mailbox import Leave, Lost
from runtime.engine.prefixes import KeptPrefixes
from runtime.engine.schedule import Pipeline, StepTimes, chunk_tokens, micro_batches

if TYPE_CHECKING:
    from runtime.engine.frames import StopReason
    from runtime.engine.mailbox import Arrival, Inbox, Outbox
    from runtime.engine.rank import Rank

ACTIVE_LIMIT = 64
"""Requests that have caches at one time; others wait in order of arrival."""


@dataclass(slots=True)
class _Request:
    submit: Submit
    sequence: int
    cached_tokens: int = 0
    sent: list[int] = field(default_factory=list)
    """Tokens that have gone down the pipeline: what every stage's caches hold once they have done their steps."""
    prompt_left: deque[int] = field(default_factory=deque)
    """The prompt without its last token, as far as it has not been sent."""
    next_token: int = 0
    """What the next decode step takes: the prompt's last token, which goes alone because only its logits are wanted
    (as in mlx-lm), then the newest token."""
    generated: int = 0


@dataclass(frozen=True, slots=True)
class _Flight:
    """A step that has not come back."""

    begin_seconds: float
    width: int
    requests: tuple[int, ...]
    group: Group | None
    """None for a chunk of a prompt."""
    prompt_tokens: int = 0


class Driver:
    """Serves the requests of one controller over ``stage_count`` stages."""

    def __init__(self, rank: Rank, inbox: Inbox, events: Outbox, stage_count: int, prefix_token_limit: int) -> None:
        self._rank = rank
        self._inbox = inbox
        self._events = events
        self._stage_count = stage_count
        self._requests: dict[int, _Request] = {}
        self._waiting: deque[Submit] = deque()
        self._prefilling: deque[int] = deque()
        self._groups = Groups(can_batch=rank.stage.batches())
        self._prefixes = KeptPrefixes(prefix_token_limit, rank.stage.trim_limit_tokens())
        self._flights: dict[int, _Flight] = {}
        self._chunks_in_flight = 0
        self._steps_since_chunk = 0
        self._next_number = 0
        self._next_sequence = 0
        self._decode = Pipeline([StepTimes() for _ in range(stage_count)])
        self._prefill = Pipeline([StepTimes() for _ in range(stage_count)])

    def run(self) -> None:
        """Serve until the agent says leave. Raises :class:`HopError` when a hop is lost."""
        while True:
            item = self._inbox.get_nowait()
            if item is None:
                if self._send_next():
                    continue
                begin = time.perf_counter()
                item = self._inbox.get()
                self._rank.counters.wait_seconds += time.perf_counter() - begin
            if isinstance(item, Leave):
                return
            if isinstance(item, Lost):
                raise item.error
            self._take(item)

    # What arrives -------------------------------------------------------------------------------------------------

    def _take(self, arrival: Arrival) -> None:
        match arrival.frame:
            case Submit() as submit:
                if submit.request in self._requests or not submit.prompt:
                    raise HopError(f"request {submit.request} is empty or runs already")
                self._waiting.append(submit)
                self._admit()
            case CancelRequest(request):
                self._cancel(request)
            case Stepped() as stepped:
                self._on_stepped(stepped)
            case frame:
                raise HopError(f"a {type(frame).__name__} frame came to the driver")

    def _admit(self) -> None:
        while self._waiting and len(self._requests) < ACTIVE_LIMIT:
            submit = self._waiting.popleft()
            *prompt, last = submit.prompt
            request = _Request(submit, self._next_sequence, next_token=last)
            self._next_sequence += 1
            prefix = None
            if (match := self._prefixes.match(submit.prompt)) is not None:
                prefix = Prefix(match.sequence, match.token_count)
                request.cached_tokens = match.token_count
                request.sent = prompt[: match.token_count]
            request.prompt_left.extend(prompt[request.cached_tokens :])
            self._requests[submit.request] = request
            self._rank.apply(Open(request.sequence, submit.sampling, prefix))
            if request.prompt_left:
                self._prefilling.append(submit.request)
            else:
                self._groups.join(submit.request)

    def _cancel(self, number: int) -> None:
        if number in self._requests:
            self._end(number, "cancelled")
            return
        waiting = next((submit for submit in self._waiting if submit.request == number), None)
        if waiting is not None:
            self._waiting.remove(waiting)
            self._events.put(Done(number, "cancelled"))

    def _on_stepped(self, stepped: Stepped) -> None:
        flight = self._flights.pop(stepped.number, None)
        if flight is None or len(stepped.stage_seconds) != self._stage_count:
            raise HopError(f"step {stepped.number} came back, which was not under way")
        self._rank.counters.in_flight = len(self._flights)
        self._measure(flight, stepped)
        if flight.group is None:
            self._chunks_in_flight -= 1
            (number,) = flight.requests
            if (request := self._requests.get(number)) is not None:
                self._events.put(Prefilled(number, flight.prompt_tokens, request.cached_tokens))
            return
        flight.group.in_flight = False
        for number, values in zip(flight.requests, stepped.logits, strict=False):  # nearly always there are none
            if values:
                self._events.put(Logits(number, values))
        self._on_tokens(flight, stepped)

    def _on_tokens(self, flight: _Flight, stepped: Stepped) -> None:
        fresh: list[tuple[int, int]] = []
        over: list[tuple[int, StopReason]] = []
        for number, token in zip(flight.requests, stepped.tokens, strict=True):
            request = self._requests.get(number)
            if request is None:  # cancelled while the step was in flight
                continue
            if token in request.submit.end_tokens:
                over.append((number, "stop"))
                continue
            request.generated += 1
            request.next_token = token
            fresh.append((number, token))
            if request.generated >= request.submit.max_tokens:
                over.append((number, "length"))
        if fresh:
            numbers, tokens = zip(*fresh, strict=True)
            self._events.put(Generated(numbers, tokens))
        for number, reason in over:
            self._end(number, reason)

    def _end(self, number: int, reason: StopReason) -> None:
        request = self._requests.pop(number)
        if request.prompt_left:
            self._prefilling.remove(number)
        self._groups.leave(number)
        if dropped := self._prefixes.keep(request.sequence, request.sent):
            self._rank.apply(Drop(tuple(dropped)))
        self._events.put(Done(number, reason))
        self._admit()

    def _measure(self, flight: _Flight, stepped: Stepped) -> None:
        pipeline, rows = (self._prefill, flight.width) if flight.group is None else (self._decode, len(flight.requests))
        for times, seconds in zip(pipeline.stages, stepped.stage_seconds, strict=True):
            times.add(rows, seconds)

    # What goes out ------------------------------------------------------------------------------------------------

    def _send_next(self) -> bool:
        """Send one step if there is one to send."""
        if self._may_chunk():
            self._send_chunk()
            return True
        wanted_count = micro_batches(self._groups.member_count, self._decode)
        group = self._groups.ready(wanted_count)
        if group is not None:
            self._send_group(group)
        return group is not None

    def _may_chunk(self) -> bool:
        if not self._prefilling or self._chunks_in_flight > self._stage_count:
            return False
        return self._steps_since_chunk >= self._groups.count

    def _send_chunk(self) -> None:
        number = self._prefilling.popleft()
        request = self._requests[number]
        count = chunk_tokens(len(request.prompt_left), self._prefill, interleaved=self._groups.count > 0)
        tokens = tuple(request.prompt_left.popleft() for _ in range(count))
        position = len(request.sent)
        request.sent += tokens
        if request.prompt_left:
            self._prefilling.append(number)
        else:
            self._groups.join(number)
        self._chunks_in_flight += 1
        self._steps_since_chunk = 0
        step = Step(self._next_number, (request.sequence,), (position,), tokens, sample=False)
        self._send(step, _Flight(time.perf_counter(), count, (number,), None, position + count))

    def _send_group(self, group: Group) -> None:
        requests = [self._requests[number] for number in group.members]
        step = Step(
            self._next_number,
            tuple(request.sequence for request in requests),
            tuple(len(request.sent) for request in requests),
            tuple(request.next_token for request in requests),
            sample=True,
        )
        for request in requests:
            request.sent.append(request.next_token)
        group.in_flight = True
        self._steps_since_chunk += 1
        self._send(step, _Flight(time.perf_counter(), 1, tuple(group.members), group))

    def _send(self, step: Step, flight: _Flight) -> None:
        self._flights[step.number] = flight
        self._rank.counters.in_flight = len(self._flights)
        self._next_number += 1
        stepped = self._rank.apply(step)
        if stepped is not None:  # one stage alone: the step is through
            self._on_stepped(stepped)
