"""Serves model bytes to peers: blocking TLS sockets and a thread for each, which is several times as fast as asyncio.

Whoever connects must show the certificate of a trusted node, in the handshake and again, in effect, at each request.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import socket
import threading
from typing import TYPE_CHECKING, Protocol

import msgspec

from discovery.tls import peer_fingerprint
from runtime.agent.models.silence import Watchman
from runtime.agent.models.wire import (
    ANY_REQUEST,
    PIECE_BYTES,
    Answer,
    AnyRequest,
    OpenModel,
    ReadChunk,
    ReadSmall,
    receive_message,
    send_message,
)
from runtime.errors import PomonaError
from runtime.models.parts import model_parts

if TYPE_CHECKING:
    import ssl

    from runtime.agent.models.library import Copy, Library
    from runtime.models.parts import Part

log = logging.getLogger(__name__)

LOOPBACK, EVERYWHERE = "127.0.0.1", "::"
CONNECTIONS = 32
_HANDSHAKE_SECONDS = 5.0
_SEND_SECONDS = 30.0
_IDLE_SECONDS = 120.0


class Keys(Protocol):
    """Who this node is, and whom it trusts now."""

    def server_context(self) -> ssl.SSLContext:
        """For a port that only trusted nodes may use."""

    def may_read(self, fingerprint: str | None) -> bool:
        """Whether the node with this certificate may read model bytes."""


class ByteServer:
    """Serves ``library`` on ``host`` until it is closed."""

    def __init__(self, library: Library, keys: Keys) -> None:
        self._library = library
        self._keys = keys
        self._listeners: list[socket.socket] = []
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        self._watchman = Watchman()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.sent_bytes = 0
        """Of chunks, so far."""

    def start(self, host: str, port: int = 0) -> int:
        """Listen on an IPv4 address or :data:`EVERYWHERE`; returns the port. Raises :class:`OSError`."""
        listener = _everywhere(port) if host == EVERYWHERE else socket.create_server((host, port))
        self._listeners.append(listener)
        threading.Thread(target=self._accept, args=(listener,), name="model bytes", daemon=True).start()
        bound: int = listener.getsockname()[1]
        return bound

    def close(self) -> None:
        """Stop listening and hang up."""
        self._closed = True
        self._watchman.close()
        with self._lock:
            doomed = [*self._listeners, *self._open]
        for each in doomed:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self, listener: socket.socket) -> None:
        while not self._closed:
            try:
                connection, _address = listener.accept()
            except OSError:
                return
            if not self._places.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._attend, args=(connection,), name="model bytes", daemon=True).start()

    def _attend(self, plain: socket.socket) -> None:
        with self._lock:
            self._open.add(plain)
        try:
            plain.settimeout(_HANDSHAKE_SECONDS)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._keys.server_context().wrap_socket(plain, server_side=True) as connection:
                with self._lock:
                    self._open.discard(plain)
                    self._open.add(connection)
                try:
                    self._serve(connection)
                finally:
                    with self._lock:
                        self._open.discard(connection)
        except (OSError, PomonaError, msgspec.DecodeError) as error:
            log.info("a reader of model bytes is gone: %s", error)
        finally:
            with self._lock:
                self._open.discard(plain)
            plain.close()
            self._places.release()

    def _serve(self, connection: ssl.SSLSocket) -> None:
        fingerprint = peer_fingerprint(connection)
        copies: list[Copy] = []
        parts: dict[str, Part] = {}
        buffer = memoryview(bytearray(PIECE_BYTES))
        while True:
            connection.settimeout(_IDLE_SECONDS)
            request: AnyRequest | None = receive_message(connection, ANY_REQUEST)
            if request is None or not self._keys.may_read(fingerprint):
                return
            connection.settimeout(_SEND_SECONDS)
            if isinstance(request, OpenModel):
                copies = self._library.copies(request.name, request.revision) if request.revision else []
                parts = model_parts(copies[0].manifest) if copies else {}
                _answer(connection, _manifest(copies, request))
            elif isinstance(request, ReadSmall):
                _answer(connection, _small(copies, request.name))
            else:
                self._send_chunk(connection, copies, parts, request, buffer)

    def _send_chunk(
        self,
        connection: ssl.SSLSocket,
        copies: list[Copy],
        parts: dict[str, Part],
        request: ReadChunk,
        buffer: memoryview,
    ) -> None:
        part = parts.get(request.part)
        if part is None or request.index >= part.chunk_count:
            send_message(connection, Answer("absent"))
            return
        found = self._library.locate(copies, part, request.index)
        if found is None:
            is_coming = self._library.is_fetching(copies[0].manifest.revision, part.name)
            send_message(connection, Answer("later" if is_coming else "absent"))
            return
        reader, digest = found
        begin, end = part.chunk(request.index)
        send_message(connection, Answer("ok", end - begin, digest))
        with self._watchman.blocking(connection, _SEND_SECONDS) as line:
            for place in range(begin, end, PIECE_BYTES):
                piece = buffer[: min(PIECE_BYTES, end - place)]
                reader.read_into(part, place, piece)
                connection.sendall(piece)
                line.moved()
        self.sent_bytes += end - begin


def _everywhere(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server((EVERYWHERE, port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("0.0.0.0", port))  # noqa: S104  every caller is checked


def _manifest(copies: list[Copy], request: OpenModel) -> bytes | None:
    if not copies:
        return None
    return msgspec.json.encode(copies[0].manifest) if request.with_manifest else b""


def _small(copies: list[Copy], name: str) -> bytes | None:
    for copy in copies:
        if any(file.name == name for file in copy.manifest.small_files):
            with contextlib.suppress(OSError):
                return (copy.folder / name).read_bytes()
    return None


def _answer(connection: ssl.SSLSocket, body: bytes | None) -> None:
    if body is None:
        send_message(connection, Answer("absent"))
    else:
        send_message(connection, Answer("ok", len(body), hashlib.sha256(body).digest()))
        _send(connection, body)


def _send(connection: ssl.SSLSocket, data: bytes) -> None:
    view = memoryview(data)
    for place in range(0, len(view), PIECE_BYTES):
        connection.sendall(view[place : place + PIECE_BYTES])
