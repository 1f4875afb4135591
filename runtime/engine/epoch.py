"""One epoch of a worker: the hops to its neighbours, and the loop that runs over them.

A pipeline is rebuilt without restarting its workers: each leaves the old epoch between two steps, closes its hops, and
joins the next with the layers that it then has. What was in flight is lost; the controller knows every token and
submits again what was running.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

from runtime.engine import hop
from runtime.engine.driver import Driver
from runtime.engine.hop import (
    EVENTS_ROLE,
    LEADER_ROLE,
    REQUESTS_ROLE,
    Credentials,
    Halt,
    Receiver,
    Sender,
    role_in,
    stage_role,
)
from runtime.engine.mailbox import INBOX_FRAMES, Inbox, Leave, Outbox
from runtime.engine.mlx_hops import MlxHops
from runtime.engine.rank import Rank, follow

if TYPE_CHECKING:
    import socket

    import mlx.core as mx

    from runtime.engine.counters import Counters
    from runtime.engine.hop import Address
    from runtime.engine.orders import Connect, Launch
    from runtime.engine.stage import Stage
    from runtime.engine.switchboard import Switchboard

PEER_SECONDS = 60.0
"""How long a rank waits for its neighbours, which may still be importing."""
_REACH_SECONDS = 4.5
"""How long it tries to reach one. All listen before any is told to dial, so the other's system answers at once."""
STEP_LIMIT_TOKENS = 4096
"""No step of any driver is longer; bounds what a hop may announce."""


class Epoch:
    """What a worker has for as long as the pipeline stays as it is. :meth:`halt` may be called from another thread."""

    def __init__(self, launch: Launch, switchboard: Switchboard) -> None:
        self.launch = launch
        self.halting = Halt()
        self._switchboard = switchboard
        self._inbox = Inbox(0 if launch.is_driver else INBOX_FRAMES)
        self._lock = threading.Lock()
        self._receivers: list[Receiver] = []
        self._outboxes: list[Outbox] = []
        self._followers: list[Outbox] = []
        self._next: Outbox | None = None
        self._previous: Receiver | None = None
        switchboard.admit(launch.callers)

    def connect(self, connect: Connect) -> None:
        """Make the hops to and from the other ranks. Raises :class:`hop.HopError`, or :class:`hop.Halted`."""
        launch = self.launch
        self._followers = [self._dial(address, LEADER_ROLE) for address in connect.followers]
        if connect.next_stage is not None:
            self._next = self._dial(connect.next_stage, stage_role(launch.stage))
        if caller := self._expected_caller():
            self._previous = self._accept(caller, connect.caller)

    def run(
        self, stage: Stage, received_bytes_per_token: int, counters: Counters, world: mx.distributed.Group | None
    ) -> Rank:
        """The rank that this worker is in this epoch, with its previous stage read from now on.

        ``world`` joins all stages if hidden states go over MLX.
        """
        counters.begin_epoch()
        limit_bytes = received_bytes_per_token * STEP_LIMIT_TOKENS
        over_mlx = MlxHops(world, limit_bytes) if world is not None and self.launch.over_mlx else None
        if self._previous is not None:
            if not self.launch.is_driver and over_mlx is None:
                self._previous.payload_limit_bytes = limit_bytes
            self._inbox.read_from(self._previous, self._expected_caller())
        return Rank(stage, counters, self._followers, self._next, over_mlx)

    def serve(self, rank: Rank) -> None:
        """Do steps until the word to leave. Raises :class:`hop.HopError` when a hop is lost."""
        launch = self.launch
        if not launch.is_driver:
            follow(rank, self._inbox, self._next if rank.stage.is_last else None)
            return
        # The controller calls when every rank is loaded, however long that takes.
        events = self._outbox(self._wait_for(EVENTS_ROLE, launch.controller, math.inf), "to the controller")
        self._inbox.read_from(self._accept(REQUESTS_ROLE, launch.controller), "of the controller")
        Driver(rank, self._inbox, events, launch.stage_count, launch.limits).run()

    def halt(self) -> None:
        """Have the compute thread leave after the step that it is in; closes the hops at once."""
        self.halting.set()
        self._inbox.put(Leave())
        self.close()

    def close(self) -> None:
        """Close every hop and end the threads around it."""
        with self._lock:
            receivers, self._receivers = self._receivers, []
            outboxes, self._outboxes = self._outboxes, []
        for receiver in receivers:
            receiver.hang_up()
        for outbox in outboxes:
            outbox.close()

    def clear(self) -> None:
        """Let go of frames that nobody takes any more; for the compute thread, when it has left."""
        self.close()
        self._inbox.close()
        self._switchboard.forget()

    @property
    def send_seconds(self) -> float:
        """Spent writing to the next stage in this epoch."""
        return 0.0 if self._next is None else self._next.send_seconds

    def _expected_caller(self) -> str:
        """The role of the rank that sends to us; empty for a driver that has no other stage."""
        launch = self.launch
        if not launch.is_leader:
            return LEADER_ROLE
        if launch.is_driver and launch.stage_count == 1:
            return ""
        return stage_role((launch.stage - 1) % launch.stage_count)

    def _dial(self, address: Address, role: str) -> Outbox:
        launch = self.launch
        connection = hop.dial(
            address,
            launch.key,
            role_in(launch.epoch, role),
            Credentials(launch.certificate_path, launch.key_path),
            within_seconds=_REACH_SECONDS,
            halt=self.halting,
        )
        return self._outbox(connection, f"to {address}")

    def _accept(self, role: str, certificate: str) -> Receiver:
        receiver = Receiver(self._wait_for(role, certificate), payload_limit_bytes=0)
        with self._lock:
            self._receivers.append(receiver)
        self._close_if_halted()
        return receiver

    def _wait_for(self, role: str, certificate: str, within_seconds: float = PEER_SECONDS) -> socket.socket:
        caller = role_in(self.launch.epoch, role)
        return self._switchboard.wait_for(caller, certificate, self.halting, within_seconds=within_seconds)

    def _outbox(self, connection: socket.socket, name: str) -> Outbox:
        outbox = Outbox(Sender(connection), self._inbox, name)
        with self._lock:
            self._outboxes.append(outbox)
        self._close_if_halted()
        return outbox

    def _close_if_halted(self) -> None:
        """The word to leave may have come while a hop was made."""
        try:
            self.halting.check()
        except hop.Halted:
            self.close()
            raise
