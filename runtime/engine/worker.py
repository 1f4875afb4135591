"""The worker process: one rank of a model, started and ended by an agent.

Orders come as lines on standard input, reports go out as lines on standard output, the log goes to standard error.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from runtime.engine import hop, lifeline
from runtime.engine.hop import EVENTS_ROLE, REQUESTS_ROLE, HopClosed, HopError, Receiver, Sender
from runtime.engine.mailbox import INBOX_FRAMES, Inbox, Leave, Outbox
from runtime.engine.orders import (
    AnyReport,
    Connect,
    Launch,
    Listening,
    Loaded,
    Progress,
    Quit,
    WorkerFailed,
    decode_order,
    encode_line,
)
from runtime.engine.switchboard import Switchboard
from runtime.engine.without_text import import_mlx_lm
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from runtime.engine.hop import Address
    from runtime.engine.rank import Rank
    from runtime.engine.stage import Stage

log = logging.getLogger(__name__)

_PEER_SECONDS = 60.0
"""How long a rank waits for its neighbours, which may still be importing."""
_QUIT_SECONDS = 2.0
"""A rank that is still in a step this long after the word to leave goes at once."""
_STATISTICS_SECONDS = 0.5
STEP_LIMIT_TOKENS = 4096
"""No step of any driver is longer; bounds what a hop may announce."""

EXIT_ASKED, EXIT_FAILED, EXIT_AGENT_GONE = 0, 1, 3


def main() -> int:
    """Run one rank to its end; the exit status says why it ended."""
    orders, reports = sys.stdin.buffer, _private_standard_output()
    lifeline.die_with_parent(os.getppid())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stderr)
    try:
        launch = decode_order(orders.readline())
    except msgspec.DecodeError:
        log.exception("the launch order cannot be read")
        launch = None
    if not isinstance(launch, Launch):
        sys.stderr.write("pomona worker is started by the agent, with a launch order on its standard input.\n")
        return EXIT_FAILED
    return _Worker(launch, orders, reports).run()


class _Worker:
    def __init__(self, launch: Launch, orders: BinaryIO, reports: BinaryIO) -> None:
        self._launch = launch
        self._orders = orders
        self._reports = reports
        self._report_lock = threading.Lock()
        self._connect: queue.SimpleQueue[Connect] = queue.SimpleQueue()
        self._inbox = Inbox(0 if launch.is_driver else INBOX_FRAMES)

    def run(self) -> int:
        try:
            self._serve()
        except PomonaError as error:
            log.exception("this rank failed")
            self._report(WorkerFailed(str(error)))
        except HopClosed as error:
            self._report(WorkerFailed(str(error), lost_peer=True))
        except HopError as error:
            log.exception("a hop failed")
            self._report(WorkerFailed(str(error)))
        except RuntimeError as error:  # MLX's own errors, the ring's among them
            log.exception("MLX failed")
            self._report(WorkerFailed(f"MLX reports: {error}", lost_peer="connection to a peer was lost" in str(error)))
        except Exception as error:  # whatever a model's code raises: told, logged, and the end of this rank
            log.exception("this rank failed unexpectedly")
            self._report(WorkerFailed(f"the worker failed: {type(error).__name__}: {error}"))
        else:
            return EXIT_ASKED
        return EXIT_FAILED

    def _serve(self) -> None:
        launch = self._launch
        switchboard = Switchboard(launch.host, launch.key)
        threading.Thread(target=self._obey, name="orders", daemon=True).start()
        # mlx comes in only now, when the agent can end us already.
        from runtime.engine import tensor_group

        in_group = launch.ranks_in_stage > 1
        self._report(Listening(switchboard.port, tensor_group.free_port(launch.host) if in_group else 0))
        import_mlx_lm()
        from runtime.engine.driver import Driver
        from runtime.engine.load import build_stage, held_bytes
        from runtime.engine.rank import Rank, follow

        connect = self._await_connect()
        self._report(Progress("connecting"))
        followers = [self._dial(address, "leader") for address in connect.followers]
        outbox = self._dial(connect.next_stage, f"stage {launch.stage}") if connect.next_stage else None
        # Every greeting comes before the ring: MLX holds the GIL while it connects, and no caller could be answered.
        caller = self._expected_caller()
        incoming = switchboard.wait_for(caller, within_seconds=_PEER_SECONDS) if caller else None
        group = tensor_group.join(connect.ring, launch.rank_in_stage) if in_group else None
        stage = build_stage(Path(launch.model_folder), launch.first_layer, launch.end_layer, group)
        received_bytes_per_token = self._load(stage)
        if incoming is not None:
            limit_bytes = 0 if launch.is_driver else received_bytes_per_token * STEP_LIMIT_TOKENS
            self._inbox.read_from(Receiver(incoming, limit_bytes), caller)
        rank = Rank(stage, followers, outbox)
        threading.Thread(target=self._sample, args=(rank,), name="statistics", daemon=True).start()
        self._report(Loaded(held_bytes()))
        if launch.is_driver:
            events = Sender(switchboard.wait_for(EVENTS_ROLE, within_seconds=_PEER_SECONDS))
            requests = Receiver(
                switchboard.wait_for(REQUESTS_ROLE, within_seconds=_PEER_SECONDS), payload_limit_bytes=0
            )
            self._inbox.read_from(requests, "of the controller")
            outgoing = Outbox(events, self._inbox, "to the controller")
            Driver(rank, self._inbox, outgoing, launch.stage_count, launch.prefix_token_limit).run()
        else:
            follow(rank, self._inbox, outbox if stage.is_last else None)

    def _expected_caller(self) -> str:
        """The role of the rank that sends to us; empty for a driver that has no other stage."""
        launch = self._launch
        if not launch.is_leader:
            return "leader"
        if launch.is_driver and launch.stage_count == 1:
            return ""
        return f"stage {(launch.stage - 1) % launch.stage_count}"

    def _dial(self, address: Address, role: str) -> Outbox:
        connection = hop.dial(address, self._launch.key, role, within_seconds=_PEER_SECONDS)
        return Outbox(Sender(connection), self._inbox, f"to {address}")

    def _load(self, stage: Stage) -> int:
        """Read and warm up, reporting as it goes; returns the most bytes that come for one token."""
        loaded_bytes = 0
        self._report(Progress("loading"))
        for layer_bytes in stage.load():
            loaded_bytes += layer_bytes
            self._report(Progress("loading", loaded_bytes))
        self._report(Progress("warming up", loaded_bytes))
        return stage.warm_up()

    def _await_connect(self) -> Connect:
        try:
            return self._connect.get(timeout=_PEER_SECONDS)
        except queue.Empty:
            raise PomonaError("The controller did not say whom to connect to.") from None

    def _obey(self) -> None:
        """Read orders until the agent says quit, or is gone."""
        for line in self._orders:
            try:
                order = decode_order(line)
            except msgspec.DecodeError:
                log.exception("an order cannot be read")
                continue
            if isinstance(order, Connect):
                self._connect.put(order)
            elif isinstance(order, Quit):
                self._inbox.put(Leave())
                time.sleep(_QUIT_SECONDS)  # the process is gone long before, unless a step hangs
                os._exit(EXIT_ASKED)
        os._exit(EXIT_AGENT_GONE)

    def _sample(self, rank: Rank) -> None:
        last = rank.statistics()
        while True:
            time.sleep(_STATISTICS_SECONDS)
            newest = rank.statistics()
            if newest != last:
                self._report(newest)
                last = newest

    def _report(self, report: AnyReport) -> None:
        with self._report_lock:
            self._reports.write(encode_line(report))
            self._reports.flush()


def _private_standard_output() -> BinaryIO:
    """Standard output for reports alone: whatever a library prints goes to the log instead."""
    private = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return os.fdopen(private, "wb")
