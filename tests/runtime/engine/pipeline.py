"""A driver and its stages in one process, stepped by hand: whatever order of events a test wants."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache

from runtime.engine.counters import Counters
from runtime.engine.driver import Driver
from runtime.engine.frames import Done, Drop, Generated, Open, Prefilled, Refused, Sampling, Step, Submit
from runtime.engine.mailbox import Arrival, Inbox, Outbox
from runtime.engine.orders import CacheLimits
from runtime.engine.rank import Rank
from runtime.engine.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import mlx.nn as nn

    from runtime.engine.frames import AnyFrame, TokenLogprobs


_GREEDY = Sampling()


class Wire(Outbox):
    """An outbox without a thread: keeps what was sent until it is delivered."""

    def __init__(self) -> None:  # no socket, so not what an outbox begins with
        self.frames: deque[tuple[AnyFrame, bytes]] = deque()

    def put(self, frame: AnyFrame, payload: bytes | bytearray | memoryview = b"") -> None:
        self.frames.append((frame, bytes(payload)))

    def wait_sent(self, limit_seconds: float) -> None:
        """Nothing is on its way before it is delivered by hand."""


class Pipeline:
    """``build`` makes the model anew for each stage."""

    def __init__(
        self,
        build: Callable[[], nn.Module],
        split: Sequence[int],
        prefix_token_limit: int = 0,
        *,
        context_tokens: int = 1 << 20,
        cache_tokens: int = 0,
        kv_bits: Literal[0, 8] = 0,
    ) -> None:
        edges = [sum(split[:index]) for index in range(len(split) + 1)]
        self.stages = [Stage(build(), first, end, kv_bits) for first, end in pairwise(edges)]
        for stage in self.stages:
            stage.warm_up()
        self.wires = [Wire() for _ in self.stages[1:]]
        outboxes: list[Outbox | None] = [*self.wires, None]
        self.ranks = [Rank(stage, Counters(), (), outbox) for stage, outbox in zip(self.stages, outboxes, strict=True)]
        self.events = Wire()
        limits = CacheLimits(context_tokens, cache_tokens, prefix_token_limit, kv_bits)
        self.driver = Driver(self.ranks[0], Inbox(0), self.events, len(split), limits)
        self.returning: deque[AnyFrame] = deque()
        self.tokens: dict[int, list[int]] = {}
        self.prefilled: dict[int, int] = {}
        self.cached: dict[int, int] = {}
        self.done: dict[int, str] = {}
        self.refused: dict[int, str] = {}
        self.logprobs: dict[int, list[TokenLogprobs | None]] = defaultdict(list)

    def submit(
        self,
        request: int,
        prompt: Sequence[int],
        max_tokens: int,
        end_tokens: Sequence[int] = (),
        sampling: Sampling = _GREEDY,
    ) -> None:
        self.give_submit(Submit(request, tuple(prompt), max_tokens, tuple(end_tokens), sampling))

    def give_submit(self, submit: Submit) -> None:
        self.tokens[submit.request] = []
        self.give(submit)

    def give(self, frame: AnyFrame) -> None:
        """Something arrives at the driver."""
        self.driver._take(Arrival(frame, bytearray()))
        self._read_events()

    def moves(self) -> Sequence[Callable[[], None]]:
        """Everything that could happen next: a stage takes a frame, a result comes back, the driver sends a step."""
        able: list[Callable[[], None]] = [
            partial(self._deliver, place) for place, wire in enumerate(self.wires) if wire.frames
        ]
        if self.returning:
            able.append(self._return)
        return able

    def send_next(self) -> bool:
        """Let the driver send a step if it has one."""
        sent = self.driver._send_next()
        self._read_events()
        return sent

    def finish(self) -> None:
        """Go on until every request is over."""
        while len(self.done) < len(self.tokens):
            moves = self.moves()
            self.build_ahead()
            if not self.send_next():
                assert moves, "nothing can happen any more, but requests are open"
                moves[-1]()

    def build_ahead(self) -> None:
        """Every stage finds time to build what it believes to come next."""
        for rank in self.ranks:
            rank.build_ahead()

    def _return(self) -> None:
        self.give(self.returning.popleft())

    def _deliver(self, place: int) -> None:
        frame, payload = self.wires[place].frames.popleft()
        assert isinstance(frame, Open | Step | Drop)
        stepped = self.ranks[place + 1].apply(frame, payload)
        if stepped is not None:
            self.returning.append(stepped)

    def _read_events(self) -> None:
        while self.events.frames:
            frame, _ = self.events.frames.popleft()
            match frame:
                case Generated(requests, tokens, logprobs):
                    for request, reported in zip(requests, logprobs, strict=False):  # none, or one for each
                        self.logprobs[request].append(reported)
                    for request, token in zip(requests, tokens, strict=True):
                        assert request not in self.done, "a token after the end"
                        self.tokens[request].append(token)
                case Prefilled(request, prompt_tokens, cached_tokens):
                    self.prefilled[request] = prompt_tokens
                    self.cached[request] = cached_tokens
                case Done(request, reason):
                    self.done[request] = reason
                case Refused(request, reason):
                    self.done[request] = "refused"
                    self.refused[request] = reason
                case _:
                    raise AssertionError(frame)


def greedy(model: nn.Module, prompt: Sequence[int], max_tokens: int) -> list[int]:
    """What the whole model says, alone: the prompt but its last token, then token by token."""
    cache = make_prompt_cache(model)
    if len(prompt) > 1:
        model(mx.array([prompt[:-1]]), cache=cache)
    token, tokens = prompt[-1], []
    for _ in range(max_tokens):
        chosen: Any = mx.argmax(model(mx.array([[token]]), cache=cache)[0, -1]).item()
        token = chosen
        tokens.append(token)
    return tokens
