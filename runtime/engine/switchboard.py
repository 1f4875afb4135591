"""The listening side of a worker: takes calls, checks each caller, and hands out the hops that were expected."""

from __future__ import annotations

import contextlib
import logging
import queue
import socket
import threading
import time
from typing import TYPE_CHECKING

from discovery import tls
from runtime.engine import hop

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

log = logging.getLogger(__name__)

_BACKLOG = 16
_HALT_CHECK_SECONDS = 0.1


class Switchboard:
    """Listens on a fresh port, on ``::`` for both families of addresses.

    Each caller is checked in a thread of its own: a silent stranger blocks nobody.
    """

    def __init__(self, host: str, key: bytes, ours: hop.Credentials) -> None:
        self._key = key
        self._ours = ours
        self._context = tls.hop_server_context(*ours, ())
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=_BACKLOG, dualstack_ipv6=host == "::")
        self._calls: dict[str, queue.SimpleQueue[ssl.SSLSocket]] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="switchboard", daemon=True).start()

    @property
    def port(self) -> int:
        """The port that the kernel chose."""
        port: int = self._listener.getsockname()[1]
        return port

    def admit(self, callers: Iterable[str]) -> None:
        """From now on, only nodes with these certificates (PEM) get through; calls that were answered stay."""
        self._context = tls.hop_server_context(*self._ours, callers)

    def wait_for(self, role: str, certificate: str, halt: hop.Halt, *, within_seconds: float) -> ssl.SSLSocket:
        """The connection of the caller that proved to be ``role`` on the node with this certificate.

        Raises :class:`hop.HopError` if it does not call, and :class:`hop.Halted` when ``halt`` is set.
        """
        deadline = time.monotonic() + within_seconds
        while time.monotonic() < deadline:
            halt.check()
            with contextlib.suppress(queue.Empty):
                connection = self._queue(role).get(timeout=_HALT_CHECK_SECONDS)
                if tls.peer_fingerprint(connection) == tls.fingerprint_of_pem(certificate):
                    return connection
                log.warning("refused a caller that is %s, but on another node", role)
                connection.close()
        raise hop.HopError(f"{role} did not connect within {within_seconds:.0f} s")

    def forget(self) -> None:
        """Close the calls that nobody waited for, those of an epoch that is over."""
        with self._lock:
            calls, self._calls = self._calls, {}
        for waiting in calls.values():
            with contextlib.suppress(queue.Empty):
                while True:
                    waiting.get_nowait().close()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _queue(self, role: str) -> queue.SimpleQueue[ssl.SSLSocket]:
        with self._lock:
            return self._calls.setdefault(role, queue.SimpleQueue())

    def _accept(self) -> None:
        while True:
            try:
                connection, caller = self._listener.accept()
            except OSError:
                if self._listener.fileno() == -1:
                    return
                time.sleep(0.1)  # out of file descriptors: the calls wait in the backlog
                continue
            threading.Thread(target=self._check, args=(connection, caller), name="greeting", daemon=True).start()

    def _check(self, connection: socket.socket, caller: object) -> None:
        try:
            proved, role = hop.answer(connection, self._key, self._context)
        except hop.HopError as error:
            log.warning("refused %s: %s", caller, error)
            return
        self._queue(role).put(proved)
