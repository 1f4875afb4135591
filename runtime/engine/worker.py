"""The worker process: one rank of a model, started and ended by an agent.

Orders come as lines on standard input, reports go out as lines on standard output, the log goes to standard error.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import resource
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from runtime.engine import causes, lifeline
from runtime.engine.counters import Counters
from runtime.engine.hop import Credentials, Halted, HopLost
from runtime.engine.orders import (
    AnyReport,
    Connect,
    Launch,
    Listening,
    Loaded,
    LoadStalled,
    PeerLost,
    Progress,
    Quit,
    Rebuild,
    StepStatistics,
    WorkerFailed,
    decode_order,
    encode_line,
)
from runtime.engine.stalls import StallWatch, StillWatch
from runtime.engine.switchboard import Switchboard
from runtime.engine.without_text import import_mlx_lm
from runtime.environment import fast_synch_warning
from runtime.signs import Signs

if TYPE_CHECKING:
    from collections.abc import Iterator

    import mlx.core as mx

    from runtime.engine.epoch import Epoch
    from runtime.engine.rank import Rank
    from runtime.engine.stage import Stage

log = logging.getLogger(__name__)

_MIB = 1 << 20
_LOOK_SECONDS = 0.5
_AGENT_SECONDS = 20.0
"""An agent says every few seconds that it is there; one that was stopped does not, and keeps no worker alive."""
_QUIT_SECONDS = 2.0
"""A rank that is still in a step this long after the word to leave goes at once."""
_SAMPLE_SECONDS, _IDLE_SAMPLE_SECONDS = 0.1, 0.4
"""Between two looks at the counters, while they move and while they stand still."""
_SIGN_SECONDS = 1.0
"""Counters that stand still are reported so often: a process that was stopped reports nothing."""

EXIT_ASKED, EXIT_FAILED, EXIT_AGENT_GONE = 0, 1, 3


def main() -> int:
    """Run one rank to its end; the exit status says why it ended."""
    orders, reports = sys.stdin.buffer, _private_standard_output()
    lifeline.die_with_parent(os.getppid())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    if warning := fast_synch_warning(os.environ):
        log.warning(warning)
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
        self._orders = orders
        self._reports = reports
        self._report_lock = threading.Lock()
        ours = Credentials(launch.certificate_path, launch.key_path)
        self._switchboard = Switchboard(launch.host, launch.key, ours)
        self._counters = Counters()
        self._stage: Stage | None = None
        self._epoch_lock = threading.Lock()
        self._epoch: Epoch | None = None
        self._newest_epoch = launch.epoch
        self._words: queue.SimpleQueue[Launch | Connect | None] = queue.SimpleQueue()
        """What comes next, in order; None is the word to quit."""
        self._words.put(launch)
        self._agent: Signs[None] = Signs()
        self._agent.hear(None)

    def run(self) -> int:
        try:
            self._serve()
        except Exception as error:  # whatever MLX or a model's code raises: told, logged, and the end of this rank
            log.exception("this rank failed")
            self._report(WorkerFailed(causes.cause(error), causes.lost_peer(error)))
        else:
            log.info("ends, as it was asked to")
            return EXIT_ASKED
        return EXIT_FAILED

    def _serve(self) -> None:
        threading.Thread(target=self._obey, name="orders", daemon=True).start()
        threading.Thread(target=self._watch_agent, name="agent's signs", daemon=True).start()
        word = self._next_word()
        while word is not None:
            word = self._live_through(word) if isinstance(word, Launch) else self._next_word()

    def _live_through(self, launch: Launch) -> Launch | Connect | None:
        """One epoch to its end; returns the word that comes after it."""
        # mlx comes in only now, when the agent can end us already.
        from runtime.engine.epoch import Epoch

        epoch = Epoch(launch, self._switchboard)
        with self._epoch_lock:
            self._epoch = epoch
            if launch.epoch < self._newest_epoch:
                return self._next_word()
        try:
            return self._run_epoch(epoch)
        except Halted:
            log.info("epoch %d was given up", launch.epoch)
        except HopLost as error:
            log.warning("epoch %d lost a hop: %s", launch.epoch, error)
            self._report(PeerLost(str(error), launch.epoch))
        finally:
            epoch.clear()
        return self._next_word()

    def _run_epoch(self, epoch: Epoch) -> Launch | Connect | None:
        from runtime.engine import device, tensor_group

        launch = epoch.launch
        in_group = launch.ranks_in_stage > 1
        ring_port = tensor_group.free_port(launch.host) if in_group or launch.over_mlx else 0
        self._report(Listening(self._switchboard.port, ring_port, launch.epoch))
        import_mlx_lm()
        device.keep_wired()
        connect = self._next_word()
        if not isinstance(connect, Connect):
            return connect  # the pipeline is built otherwise, or not at all
        self._report(Progress("connecting", 0, launch.epoch))
        log.info(
            "epoch %d, stage %d: layers %d to %d; connects",
            launch.epoch, launch.stage, launch.first_layer, launch.end_layer - 1,
        )  # fmt: skip
        # Every greeting comes before the ring: MLX holds the GIL while it connects, and no caller could be answered.
        epoch.connect(connect)
        world = None
        if connect.ring:
            world = tensor_group.join(connect.ring, launch.rank_in_stage if in_group else launch.stage)
        with self._watched_load():
            received_bytes_per_token = self._load(epoch, world if in_group else None)
        assert self._stage is not None  # it was just loaded
        rank = epoch.run(self._stage, received_bytes_per_token, self._counters, world)
        over = threading.Event()
        sampling = threading.Thread(target=self._sample, args=(rank, epoch, over), name="statistics", daemon=True)
        sampling.start()
        try:
            epoch.serve(rank)
        finally:
            over.set()
            log.info("epoch %d ends after %d steps", launch.epoch, self._counters.steps)
            sampling.join()  # it holds the stage, whose weights the next one may not need
        return self._next_word()

    def _load(self, epoch: Epoch, group: mx.distributed.Group | None) -> int:
        """Read and warm up, reporting as it goes; returns the most bytes that come for one token."""
        from runtime.engine.load import build_stage, held_bytes

        launch = epoch.launch
        folder = Path(launch.model_folder)
        previous, self._stage = self._stage, None
        stage = build_stage(folder, launch.first_layer, launch.end_layer, group, previous, launch.limits.kv_bits)
        del previous  # what the new stage did not take over is freed before anything is read
        kept_bytes = held_bytes()
        loaded_bytes = 0
        self._report(Progress("loading", 0, launch.epoch))
        for layer_bytes in stage.load():
            loaded_bytes += layer_bytes
            self._report(Progress("loading", loaded_bytes, launch.epoch))
            epoch.halting.check()
        self._report(Progress("warming up", loaded_bytes, launch.epoch))
        received_bytes_per_token = stage.warm_up()
        self._stage = stage
        now_bytes = held_bytes()
        log.info("ready: read %.1f MB, holds %.1f MB", (now_bytes - kept_bytes) / _MIB, now_bytes / _MIB)
        self._report(Loaded(now_bytes, now_bytes - kept_bytes, launch.epoch))
        return received_bytes_per_token

    def _next_word(self) -> Launch | Connect | None:
        return self._words.get()  # the agent ends this process when the controller is gone

    def _obey(self) -> None:
        """Read orders until the agent says quit, or is gone."""
        for line in self._orders:
            self._agent.hear(None)
            try:
                order = decode_order(line)
            except msgspec.DecodeError:
                log.exception("an order cannot be read")
                continue
            if isinstance(order, Connect):
                self._words.put(order)
            elif isinstance(order, Rebuild):
                self._turn_to(order.launch, order.launch.epoch)
            elif isinstance(order, Quit):
                self._turn_to(None, self._newest_epoch + 1)
                time.sleep(_QUIT_SECONDS)  # the process is gone long before, unless a step hangs
                os._exit(EXIT_ASKED)
        os._exit(EXIT_AGENT_GONE)

    def _watch_agent(self) -> None:
        while not self._agent.silent(_AGENT_SECONDS):
            time.sleep(_LOOK_SECONDS)
            self._agent.look(time.monotonic())
        log.error("the agent has said nothing for %.0f s", _AGENT_SECONDS)
        os._exit(EXIT_AGENT_GONE)

    def _turn_to(self, word: Launch | None, epoch: int) -> None:
        """Have the compute thread leave what it does, then take ``word``."""
        with self._epoch_lock:
            self._newest_epoch = epoch
            if self._epoch is not None:
                self._epoch.halt()
        self._words.put(word)

    @contextlib.contextmanager
    def _watched_load(self) -> Iterator[None]:
        """Meanwhile another thread tells of a load in which nothing happens."""
        over = threading.Event()

        def watch() -> None:
            stalls = StillWatch()
            while not over.wait(_SAMPLE_SECONDS):
                if stalled := stalls.look(time.monotonic(), *_work_done()):
                    self._report(LoadStalled(stalled))
                    return

        threading.Thread(target=watch, name="load", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _sample(self, rank: Rank, epoch: Epoch, over: threading.Event) -> None:
        from runtime.engine.device import has_gpu

        last: StepStatistics | None = None
        reported_seconds = 0.0
        counters = self._counters
        stalls = StallWatch(counters.pace, has_gpu=has_gpu())
        is_idle = False
        while not over.wait(_IDLE_SAMPLE_SECONDS if is_idle else _SAMPLE_SECONDS):
            now = time.monotonic()
            stalled_seconds = stalls.look(now, counters.steps, counters.step_tokens, *_work_done())
            newest = StepStatistics(
                steps=counters.steps,
                tokens=counters.tokens,
                compute_seconds=counters.compute_seconds,
                sent_bytes=counters.sent_bytes,
                kv_bytes=rank.stage.kv_bytes,
                wait_seconds=counters.wait_seconds,
                send_seconds=epoch.send_seconds,
                in_flight=counters.in_flight,
                chat_steps=counters.chat_steps,
                chat_seconds=counters.chat_seconds,
                chat_context_tokens=counters.chat_context_tokens,
                stalled_seconds=stalled_seconds,
                stalled_cpu_share=stalls.cpu_share if stalled_seconds else 0.0,
            )
            has_news = last is None or newest.steps != last.steps or newest.stalled_seconds > 0
            is_idle = not has_news and not counters.step_tokens
            if has_news or now - reported_seconds > _SIGN_SECONDS:
                self._report(newest)
                last, reported_seconds = newest, now

    def _report(self, report: AnyReport) -> None:
        with self._report_lock:
            self._reports.write(encode_line(report))
            self._reports.flush()


def _work_done() -> tuple[float, int]:
    """Seconds of processor time that this process has had, and what it read: blocks, and pages brought in."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_inblock + used.ru_majflt


def _private_standard_output() -> BinaryIO:
    """Standard output for reports alone: whatever a library prints goes to the log instead."""
    private = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return os.fdopen(private, "wb")
