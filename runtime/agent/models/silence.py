"""Hangs up lines on which nothing moves any more.

Model bytes go over sockets that block in the kernel. With a time limit on the socket, Python asks the kernel before
each 16 KiB of TLS whether something is there, and both ends together take a quarter more of a processor.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

_LOOK_SECONDS = 0.25


class Line:
    """A connection whose bytes are waited for without a limit."""

    def __init__(self, connection: ssl.SSLSocket, patience_seconds: float) -> None:
        self.connection = connection
        self._patience_seconds = patience_seconds
        self._moved_seconds = time.monotonic()

    def moved(self) -> None:
        """Something has come or gone."""
        self._moved_seconds = time.monotonic()

    @property
    def is_silent(self) -> bool:
        """Whether nothing has for too long."""
        return time.monotonic() - self._moved_seconds > self._patience_seconds


class Watchman:
    """Looks at lines from a thread of its own, which runs from the first line on until :meth:`close`."""

    def __init__(self) -> None:
        self._lines: set[Line] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def blocking(self, connection: ssl.SSLSocket, patience_seconds: float) -> Iterator[Line]:
        """For the time of the block the connection blocks, and is hung up when nothing moves for so long.

        Raises :class:`TimeoutError` at the end of the block in place of what that looks like. The time limit that the
        connection had is put back.
        """
        line = Line(connection, patience_seconds)
        limit = connection.gettimeout()
        connection.settimeout(None)
        with self._lock:
            self._lines.add(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="silence", daemon=True)
                self._thread.start()
        try:
            yield line
            connection.settimeout(limit)
        except OSError as error:
            if line.is_silent:
                raise TimeoutError(f"nothing moved for {patience_seconds:.0f} s") from error
            raise
        finally:
            with self._lock:
                self._lines.discard(line)

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK_SECONDS):
            with self._lock:
                silent = [line for line in self._lines if line.is_silent]
            for line in silent:
                with contextlib.suppress(OSError):
                    # Not the method of SSLSocket, which would forget TLS while another thread reads.
                    socket.socket.shutdown(line.connection, socket.SHUT_RDWR)
