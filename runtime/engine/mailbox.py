"""The threads around a rank's compute: readers that fill its inbox, writers that empty its outboxes.

Compute never touches a socket. What goes wrong on one arrives in the inbox as :class:`Lost`.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from runtime.engine.hop import HopError

if TYPE_CHECKING:
    from runtime.engine.frames import AnyFrame
    from runtime.engine.hop import Receiver, Sender

INBOX_FRAMES = 4
"""Hidden states that may wait for compute; beyond that the rank before waits, so memory stays bounded."""
_OUTBOX_FRAMES = 4


class Arrival(NamedTuple):
    """A frame and its payload."""

    frame: AnyFrame
    payload: bytearray


class Lost(NamedTuple):
    """A hop is gone."""

    error: HopError


class Leave(NamedTuple):
    """The agent wants this rank to leave the pipeline between two steps."""


class Inbox:
    """What waits for the compute thread.

    ``frame_limit`` 0 means no bound: the driver's inbox must take every token, or the ring of stages could block
    itself; what is in flight towards it is bounded by what it sent.
    """

    def __init__(self, frame_limit: int) -> None:
        self._queue: queue.Queue[Arrival | Lost | Leave] = queue.Queue(frame_limit)

    def read_from(self, receiver: Receiver, name: str) -> None:
        """Start a thread that puts every frame of ``receiver`` here."""
        threading.Thread(target=self._read, args=(receiver,), name=f"reader {name}", daemon=True).start()

    def put(self, item: Lost | Leave) -> None:
        """Put something that is no frame, whatever the bound: the loss of a hop last, the word to leave first."""
        with self._queue.mutex:
            if isinstance(item, Leave):
                self._queue.queue.appendleft(item)
            else:
                self._queue.queue.append(item)
            self._queue.not_empty.notify()

    def get(self) -> Arrival | Lost | Leave:
        """Sleep until something comes."""
        return self._queue.get()

    def get_nowait(self) -> Arrival | Lost | Leave | None:
        """The next item if there is one."""
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Let go of what nobody will take any more; a reader that waits for room goes on, and ends with its hop."""
        while self.get_nowait() is not None:
            pass

    def _read(self, receiver: Receiver) -> None:
        while True:
            try:
                arrival = Arrival(*receiver.receive())
            except HopError as error:
                receiver.close()
                self.put(Lost(error))
                return
            self._queue.put(arrival)


class Outbox:
    """Frames on their way to one rank, written by a thread of their own so that compute goes on."""

    def __init__(self, sender: Sender, inbox: Inbox, name: str) -> None:
        self.send_seconds = 0.0
        """Spent writing frames, which includes waiting for a peer that does not read."""
        self._sender = sender
        self._inbox = inbox
        self._closed = False
        self._queue: queue.Queue[tuple[AnyFrame, bytes | bytearray | memoryview] | None] = queue.Queue(_OUTBOX_FRAMES)
        threading.Thread(target=self._write, name=f"writer {name}", daemon=True).start()

    def put(self, frame: AnyFrame, payload: bytes | bytearray | memoryview = b"") -> None:
        """Queue a frame; waits when four are queued already. After :meth:`close` frames are dropped."""
        if not self._closed:
            self._queue.put((frame, payload))

    def wait_sent(self, limit_seconds: float) -> None:
        """Sleep until every queued frame is with the system, but no longer than this."""
        with self._queue.all_tasks_done:
            self._queue.all_tasks_done.wait_for(lambda: not self._queue.unfinished_tasks, limit_seconds)

    def close(self) -> None:
        """Close the hop and end the thread."""
        self._closed = True
        self._sender.hang_up()
        self._queue.put(None)

    def _write(self) -> None:
        failed = False
        while (item := self._queue.get()) is not None:
            if not failed:  # else the compute thread must not wait on a hop that is gone; it reads of the loss soon
                begin = time.perf_counter()
                try:
                    self._sender.send(*item)
                except HopError as error:
                    failed = True
                    self._inbox.put(Lost(error))
                self.send_seconds += time.perf_counter() - begin
            self._queue.task_done()
        self._sender.close()
