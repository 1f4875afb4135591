"""The driver: stage 0 decides what every stage does next. It alone schedules, and it knows every token.

Prompts go down the pipeline in chunks, so that all stages work on one prompt at a time; sequences that decode go in
groups, as many groups in flight as pay (schedule.py). A chunk follows only when every group has had a step since the
last one, so no answer waits for more than one chunk.

The caches are bounded: requests wait in turn until there is room for them (room.py), and what is kept of earlier ones
gives way.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from runtime.engine.cached_sequences import CachedSequences
from runtime.engine.flights import Flight, Flights
from runtime.engine.frames import (
    CancelRequest,
    Done,
    Generated,
    Logits,
    Mask,
    Prefilled,
    Refused,
    Step,
    Stepped,
    Submit,
)
from runtime.engine.groups import Groups
from runtime.engine.hop import HopError
from runtime.engine.mailbox import Leave, Lost
from runtime.engine.masks import Masks
from runtime.engine.room import Room
from runtime.engine.schedule import chunk_tokens, micro_batches
from runtime.engine.waiting import WAITING_LIMIT

if TYPE_CHECKING:
    from runtime.engine.frames import StopReason, TokenLogprobs
    from runtime.engine.groups import Group
    from runtime.engine.mailbox import Arrival, Inbox, Outbox
    from runtime.engine.orders import CacheLimits
    from runtime.engine.rank import Rank
    from runtime.engine.requests import Request


class Driver:
    """Serves the requests of one controller over ``stage_count`` stages."""

    def __init__(self, rank: Rank, inbox: Inbox, events: Outbox, stage_count: int, limits: CacheLimits) -> None:
        self._rank = rank
        self._inbox = inbox
        self._events = events
        self._stage_count = stage_count
        self._room = Room(limits)
        self._requests = self._room.active
        self._masks = Masks()
        self._prefilling: deque[int] = deque()
        self._groups = Groups(can_batch=rank.stage.batches())
        self._caches = CachedSequences(rank, self._room, limits)
        self._flights = Flights(stage_count)
        self._steps_since_chunk = 0

    def run(self) -> None:
        """Serve until the agent says leave. Raises :class:`HopError` when a hop is lost."""
        while True:
            item = self._inbox.get_nowait()
            if item is None:
                if self._send_next():
                    continue
                begin = time.perf_counter()
                if self._flights:
                    self._rank.build_ahead()
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
                self._submit(submit)
            case CancelRequest(request):
                self._cancel(request)
            case Mask() as mask:
                self._on_mask(mask)
            case Stepped() as stepped:
                self._on_stepped(stepped)
            case frame:
                raise HopError(f"a {type(frame).__name__} frame came to the driver")

    def _submit(self, submit: Submit) -> None:
        if submit.request in self._room:
            raise HopError(f"request {submit.request} runs already")
        if self._room.is_full:
            self._events.put(Refused(submit.request, f"{WAITING_LIMIT} requests are waiting already; try again later."))
        elif not submit.prompt:
            self._events.put(Refused(submit.request, "The prompt is empty; write something."))
        elif len(submit.prompt) >= self._room.context_tokens:
            reason = (
                f"The prompt has {len(submit.prompt)} tokens, and with its answer it may have at most "
                f"{self._room.context_tokens} here; shorten it, begin a new chat, "
                "or load the model with a longer context."
            )
            self._events.put(Refused(submit.request, reason))
        else:
            if submit.masked:
                self._masks.expect(submit.request)
            self._room.wait(submit)
            self._admit()

    def _admit(self) -> None:
        while (request := self._room.begin_next()) is not None:
            self._open(request)

    def _open(self, request: Request) -> None:
        self._caches.open(request)
        if request.prompt_left:
            self._prefilling.append(request.submit.request)
        else:
            self._join(request)

    def _join(self, request: Request) -> None:
        """Its prompt is on its way: let it decode, unless it still lacks a mask, for which a group would wait."""
        if request.submit.request not in self._masks.missing:
            self._groups.join(request.submit.request)

    def _cancel(self, number: int) -> None:
        if number in self._room:
            self._end(number, "cancelled")

    def _on_mask(self, mask: Mask) -> None:
        number = mask.request
        index = self._room.next_index(number)
        if index is None:
            return  # it ended while the mask was on its way
        if not self._masks.add(mask, index):
            self._end(number, "stop")
            return
        request = self._requests.get(number)
        if request is not None and not request.prompt_left and number not in self._groups:
            self._groups.join(number)

    def _on_stepped(self, stepped: Stepped) -> None:
        flight = self._flights.land(stepped)
        self._rank.counters.in_flight = len(self._flights)
        if flight.group is None:
            (number,) = flight.requests
            request = self._requests.get(number)
            if request is not None and not request.generated:  # not after a pause
                self._events.put(Prefilled(number, flight.prompt_tokens, request.cached_tokens))
            return
        flight.group.in_flight = False
        for number, values in zip(flight.requests, stepped.logits, strict=False):  # nearly always there are none
            if values:
                self._events.put(Logits(number, values))
        self._on_tokens(flight, stepped)

    def _on_tokens(self, flight: Flight, stepped: Stepped) -> None:
        fresh: list[tuple[int, int, TokenLogprobs | None]] = []
        over: list[tuple[int, StopReason]] = []
        all_logprobs = stepped.logprobs or (None,) * len(stepped.tokens)
        for number, token, logprobs in zip(flight.requests, stepped.tokens, all_logprobs, strict=True):
            request = self._requests.get(number)
            if request is None:  # cancelled while the step was in flight
                continue
            if token in request.submit.end_tokens:
                over.append((number, "stop"))
                continue
            request.generated += 1
            request.next_token = token
            fresh.append((number, token, logprobs))
            if request.generated >= request.max_tokens:
                over.append((number, "length"))
            elif request.submit.masked:
                self._masks.expect(number)
        if fresh:
            numbers, tokens, reported = zip(*fresh, strict=True)
            self._events.put(Generated(numbers, tokens, reported if any(reported) else ()))
        for number, reason in over:
            self._end(number, reason)

    def _end(self, number: int, reason: StopReason) -> None:
        self._masks.forget(number)
        request = self._room.end(number)
        if request is not None:
            self._release(request)
        self._events.put(Done(number, reason))
        self._admit()

    def _release(self, request: Request) -> None:
        """It has no caches any more."""
        if request.prompt_left:
            self._prefilling.remove(request.submit.request)
        self._groups.leave(request.submit.request)
        self._caches.close(request)

    # What goes out ------------------------------------------------------------------------------------------------

    def _send_next(self) -> bool:
        """Send one step if there is one to send."""
        if self._may_chunk():
            self._send_chunk()
            return True
        if not self._make_room():
            return False
        wanted_count = micro_batches(self._groups.member_count, self._flights.decode)
        group = self._groups.ready(wanted_count, self._masks.missing)
        if group is not None:
            self._send_group(group)
        elif self._prefilling and not self._flights:  # every group waits for masks
            self._send_chunk()
        else:
            return False
        return True

    def _make_room(self) -> bool:
        """Let those that came last give way until the next token of everyone fits; False while one is on its way."""
        while self._room.spare_tokens < 0 and (request := self._room.newest()) is not None:
            if self._groups.is_in_flight(request.submit.request):
                return False
            self._room.pause(request)
            self._release(request)
        self._caches.shrink()
        return True

    def _may_chunk(self) -> bool:
        if not self._prefilling or self._flights.chunk_count > self._stage_count:
            return False
        return self._steps_since_chunk >= self._groups.count

    def _send_chunk(self) -> None:
        number = self._prefilling.popleft()
        request = self._requests[number]
        position = len(request.sent)
        count = chunk_tokens(len(request.prompt_left), self._flights.prefill, interleaved=self._groups.count > 0)
        if request.snapshots:
            count = min(count, request.snapshots[0] - position)
        tokens = tuple(request.prompt_left.popleft() for _ in range(count))
        request.sent += tokens
        if request.prompt_left:
            self._prefilling.append(number)
        else:
            self._join(request)
        self._steps_since_chunk = 0
        step = Step(self._flights.sent_count, (request.sequence,), (position,), tokens, sample=False)
        self._send(step, Flight((number,), None, count, position + count))
        if request.snapshots and request.snapshots[0] == position + count:
            request.snapshots.popleft()
            self._caches.snapshot(request)

    def _send_group(self, group: Group) -> None:
        requests = [self._requests[number] for number in group.members]
        masks = [self._masks.take(number) for number in group.members]
        step = Step(
            self._flights.sent_count,
            tuple(request.sequence for request in requests),
            tuple(len(request.sent) for request in requests),
            tuple(request.next_token for request in requests),
            sample=True,
            masks=tuple(masks) if any(masks) else (),
        )
        for request in requests:
            request.sent.append(request.next_token)
        group.in_flight = True
        self._steps_since_chunk += 1
        self._send(step, Flight(tuple(group.members), group, len(group.members)))

    def _send(self, step: Step, flight: Flight) -> None:
        self._flights.begin(flight)
        self._rank.counters.in_flight = len(self._flights)
        stepped = self._rank.apply(step)
        if stepped is not None:  # one stage alone: the step is through
            self._on_stepped(stepped)
