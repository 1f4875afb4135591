"""One rank at work: what it does with a frame, wherever in the pipeline it stands."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from runtime.engine import tensors
from runtime.engine.frames import Drop, Open, Step, Stepped
from runtime.engine.hop import HopError
from runtime.engine.mailbox import Leave, Lost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.engine.counters import Counters
    from runtime.engine.handover import Carried
    from runtime.engine.mailbox import Inbox, Outbox
    from runtime.engine.mlx_hops import MlxHops
    from runtime.engine.stage import Stage

_SEND_LIMIT_SECONDS = 0.01
"""On a slower way, or to a peer that does not read, nothing is gained by waiting."""


class Rank:
    """A stage with its ways out: ``followers`` of its own tensor group, and the leader of the next stage."""

    def __init__(
        self,
        stage: Stage,
        counters: Counters,
        followers: Sequence[Outbox] = (),
        next_stage: Outbox | None = None,
        mlx_hops: MlxHops | None = None,
    ) -> None:
        self.stage = stage
        self.counters = counters
        self._followers = followers
        self._next_stage = next_stage
        self._mlx_hops = mlx_hops

    def apply(self, frame: Open | Step | Drop, payload: bytes | bytearray = b"") -> Stepped | None:
        """Hand ``frame`` to the followers, do it, and pass it on. On the last stage, a step returns what came of it."""
        for follower in self._followers:
            follower.put(frame, payload)
        if isinstance(frame, Step):
            return self._step(frame, payload)
        if isinstance(frame, Open):
            self.stage.open(frame)
        else:
            self.stage.drop(frame)
        if self._next_stage is not None and not self.stage.is_last:
            self._next_stage.put(frame)
        return None

    def build_ahead(self, token_outbox: Outbox | None = None) -> None:
        """While nothing is there to do. What comes over MLX is not there as bytes, with which to fill blanks.

        What goes out goes first: building holds Python's lock, for which a writer would wait.
        """
        if self._mlx_hops is not None:
            return
        for outbox in (*self._followers, self._next_stage, token_outbox):
            if outbox is not None:
                outbox.wait_sent(_SEND_LIMIT_SECONDS)
        self.stage.build_ahead()

    def _step(self, step: Step, payload: bytes | bytearray) -> Stepped | None:
        received = self._mlx_hops.receive(step.carried) if self._mlx_hops is not None else None
        self.counters.begin_step(step)
        begin = time.perf_counter()
        result = self.stage.run_built(step, payload) if received is None else None
        if result is None:
            result = self.stage.run(step, tensors.from_payload(payload, step.carried) if received is None else received)
        seconds = time.perf_counter() - begin
        self.counters.count_step(step, seconds)
        stage_seconds = (*step.stage_seconds, seconds)
        if self.stage.is_last:
            return Stepped(step.number, result.tokens, stage_seconds, result.logits, result.logprobs)
        if self._next_stage is not None:
            self._hand_on(self._next_stage, msgspec.structs.replace(step, stage_seconds=stage_seconds), result.carried)
        return None

    def _hand_on(self, next_stage: Outbox, step: Step, arrays: Carried) -> None:
        if self._mlx_hops is None:
            carried, data = tensors.to_payload(arrays)
            self.counters.sent_bytes += len(data)
            next_stage.put(msgspec.structs.replace(step, carried=carried), data)
        else:
            next_stage.put(msgspec.structs.replace(step, carried=tensors.headers_of(arrays)))
            self.counters.sent_bytes += self._mlx_hops.send(arrays)


def follow(rank: Rank, inbox: Inbox, token_outbox: Outbox | None) -> None:
    """The loop of every rank but the driver: do what comes, until the agent says leave.

    ``token_outbox`` leads from the last stage's leader to the driver. Raises :class:`HopError` when a hop is lost.
    """
    while True:
        begin = time.perf_counter()
        item = inbox.get_nowait()
        if item is None:
            rank.build_ahead(token_outbox)
            item = inbox.get()
        rank.counters.wait_seconds += time.perf_counter() - begin
        if isinstance(item, Leave):
            return
        if isinstance(item, Lost):
            raise item.error
        if not isinstance(item.frame, Open | Step | Drop):
            raise HopError(f"a {type(item.frame).__name__} frame came down the pipeline")
        stepped = rank.apply(item.frame, item.payload)
        if stepped is not None and token_outbox is not None:
            token_outbox.put(stepped)
