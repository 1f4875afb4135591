"""A hop: one TLS connection that carries frames in one direction.

The nodes prove who they are by their pinned certificates. Inside, the key of the job proves which job's rank is there
and as what it calls (HMAC-SHA256 over both nonces, each side binds what it is): a node may have ranks of several.
Every wait has a time limit, except the wait of an idle receiver for the next frame, which sleeps until TCP keepalive
finds the peer gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from discovery import tls
from runtime.engine import frames

if TYPE_CHECKING:
    import ssl

NONCE_BYTES = 32
PROOF_BYTES = 32
_ROLE_LIMIT_BYTES = 256
HANDSHAKE_SECONDS = 10.0
TRANSFER_SECONDS = 30.0
"""The longest that one frame may take once it has begun."""
REQUESTS_ROLE, EVENTS_ROLE, LEADER_ROLE = "requests", "events", "leader"
"""What the controller calls itself when it dials the driver, once to send and once to receive; and what the first rank
of a tensor group is to the others."""
_DIAL_RETRY_SECONDS = 0.05
_KEEPALIVE_IDLE_SECONDS, _KEEPALIVE_INTERVAL_SECONDS, _KEEPALIVE_PROBES = 5, 2, 3
_GREETING = struct.Struct("!4sH")
_MAGIC = b"PMN1"


class HopError(Exception):
    """The peer is not who it should be, broke the protocol, or is gone."""


class HopLost(HopError):
    """The peer or the way to it is gone: closed between two frames or within one, or silent for too long."""


class Halted(Exception):
    """The agent wants something else before this was done."""


class Halt:
    """Set from one thread to have another give up what it waits for."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """From now on :meth:`check` raises."""
        self._event.set()

    def check(self) -> None:
        """Raises :class:`Halted` once it is set."""
        if self._event.is_set():
            raise Halted


class Address(msgspec.Struct, frozen=True):
    """Where a worker listens for hops."""

    host: str
    port: int
    certificate: str = ""
    """What the node there must show, as PEM."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Credentials(NamedTuple):
    """Where this node's own certificate and key are, as PEM files."""

    certificate_path: str
    key_path: str


class _Hop:
    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _keep_alive(connection)
        self._connection = connection
        self._number = 0

    def hang_up(self) -> None:
        """End the connection, from any thread: the one that uses it wakes with an error and closes it."""
        with contextlib.suppress(OSError):
            # Of the socket beneath TLS: SSLSocket's own would also take away what the other thread works with.
            socket.socket.shutdown(self._connection, socket.SHUT_RDWR)

    def close(self) -> None:
        """Free the connection; only when no other thread uses it, because its number may be given out again."""
        self.hang_up()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Sender(_Hop):
    """The end that writes frames."""

    def send(self, frame: frames.AnyFrame, payload: bytes | bytearray | memoryview = b"") -> None:
        """Write one frame. Raises :class:`HopError` when the peer is gone or does not read for 30 s."""
        header = frames.encode(frame)
        body = memoryview(payload).cast("B")
        prefix = frames.PREFIX.pack(len(header), body.nbytes, self._number)
        self._number += 1
        try:
            self._connection.settimeout(TRANSFER_SECONDS)
            self._connection.sendall(prefix + header)
            if body.nbytes:
                self._connection.sendall(body)
        except TimeoutError as error:
            raise HopLost(f"the next rank did not take data for {TRANSFER_SECONDS:.0f} s") from error
        except OSError as error:
            raise HopLost("the next rank closed the connection") from error


class Receiver(_Hop):
    """The end that reads frames."""

    def __init__(self, connection: socket.socket, payload_limit_bytes: int) -> None:
        super().__init__(connection)
        self.payload_limit_bytes = payload_limit_bytes
        """No payload larger than this is accepted; the plan says how large a hidden state can be."""

    def receive(self) -> tuple[frames.AnyFrame, bytearray]:
        """Wait for the next frame. Raises :class:`HopLost` at a clean end and :class:`HopError` for anything else."""
        prefix = bytearray(frames.PREFIX.size)
        self._fill(memoryview(prefix)[:1], None)
        self._fill(memoryview(prefix)[1:])
        header_bytes, payload_bytes, number = frames.PREFIX.unpack(prefix)
        if header_bytes > frames.HEADER_LIMIT_BYTES or payload_bytes > self.payload_limit_bytes:
            raise HopError(f"a frame announces {header_bytes} + {payload_bytes} bytes, more than this model can need")
        if number != self._number:
            raise HopError(f"frame {self._number} was expected, but {number} came")
        self._number += 1
        header, payload = bytearray(header_bytes), bytearray(payload_bytes)
        self._fill(memoryview(header))
        self._fill(memoryview(payload))
        try:
            return frames.decode(header), payload
        except msgspec.DecodeError as error:
            raise HopError(f"a frame cannot be read: {error}") from error

    def _fill(self, buffer: memoryview, limit_seconds: float | None = TRANSFER_SECONDS) -> None:
        """Read until ``buffer`` is full. Without a limit it is the wait between frames, where a close is no fault."""
        while buffer.nbytes:
            try:
                self._connection.settimeout(limit_seconds)
                count = self._connection.recv_into(buffer)
            except TimeoutError as error:
                raise HopLost(f"a frame stopped half way for {TRANSFER_SECONDS:.0f} s") from error
            except OSError as error:
                raise HopLost("the connection to a rank was lost") from error
            if count == 0 and limit_seconds is None:
                raise HopLost("the other rank closed the connection")
            if count == 0:
                raise HopLost("a frame was cut off")
            buffer = buffer[count:]


def role_in(epoch: int, role: str) -> str:
    """What a caller proves to be: a part of one epoch, so that a late call of an earlier one is not taken for it."""
    return f"{role} of epoch {epoch}"


def stage_role(stage: int) -> str:
    """What the leader of a stage is to the next stage."""
    return f"stage {stage}"


def dial(
    address: Address,
    key: bytes,
    role: str,
    ours: Credentials,
    *,
    within_seconds: float,
    halt: Halt | None = None,
) -> ssl.SSLSocket:
    """Connect to a worker that may still be starting, and prove ourselves as ``role``.

    Raises :class:`HopError` if nobody answers within ``within_seconds``, shows another certificate than the address
    names or does not know ``key``, and :class:`Halted` when ``halt`` is set.
    """
    context = tls.client_context(*ours, address.certificate)
    plain = _reach(address, within_seconds, halt or Halt())
    try:
        plain.settimeout(HANDSHAKE_SECONDS)
        connection = context.wrap_socket(plain)
    except OSError as error:
        plain.close()
        raise HopError(f"the worker at {address} is not on the node that it should be ({_reason(error)})") from error
    try:
        _prove_dialled(connection, key, role.encode())
    except (OSError, HopError) as error:
        connection.close()
        raise HopError(f"the worker at {address} did not prove that it belongs to this job") from error
    return connection


def answer(plain: socket.socket, key: bytes, context: ssl.SSLContext) -> tuple[ssl.SSLSocket, str]:
    """The accepting side of the proof; returns the connection and the role that the dialling side proved.

    Raises :class:`HopError` for a stranger, also for one that says nothing for 10 s; the connection is then closed.
    """
    try:
        plain.settimeout(HANDSHAKE_SECONDS)
        connection = context.wrap_socket(plain, server_side=True)
    except OSError as error:
        plain.close()
        raise HopError(f"a caller is not on a node of this job ({_reason(error)})") from error
    try:
        return connection, _proved_role(connection, key)
    except HopError:
        connection.close()
        raise


def _proved_role(connection: ssl.SSLSocket, key: bytes) -> str:
    try:
        magic, role_bytes = _GREETING.unpack(_read(connection, _GREETING.size))
        if magic != _MAGIC or role_bytes > _ROLE_LIMIT_BYTES:
            raise HopError("a stranger called")
        role = _read(connection, role_bytes)
        their_nonce, our_nonce = _read(connection, NONCE_BYTES), secrets.token_bytes(NONCE_BYTES)
        connection.sendall(our_nonce + _proof(key, b"accept", role, their_nonce, our_nonce))
        if not hmac.compare_digest(_read(connection, PROOF_BYTES), _proof(key, b"dial", role, their_nonce, our_nonce)):
            raise HopError("a caller does not know the key of this job")
        return role.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise HopError("a caller did not complete the greeting") from error


def _reason(error: OSError) -> str:
    return getattr(error, "verify_message", "") or getattr(error, "reason", "") or error.strerror or str(error)


def _reach(address: Address, within_seconds: float, halt: Halt) -> socket.socket:
    deadline = time.monotonic() + within_seconds
    while True:
        halt.check()
        try:
            left_seconds = max(deadline - time.monotonic(), _DIAL_RETRY_SECONDS)
            return socket.create_connection((address.host, address.port), min(HANDSHAKE_SECONDS, left_seconds))
        except TimeoutError as error:
            if time.monotonic() > deadline:
                raise HopError(
                    f"cannot reach the worker at {address}, which answered nothing for {within_seconds:.0f} s; a "
                    "firewall on that node or between the two may block it: allow Pomona to take connections there"
                ) from error
        except OSError as error:
            if time.monotonic() > deadline:
                raise HopError(f"nobody answers at {address}: {error.strerror or error}") from error
            time.sleep(_DIAL_RETRY_SECONDS)


def _prove_dialled(connection: socket.socket, key: bytes, role: bytes) -> None:
    connection.settimeout(HANDSHAKE_SECONDS)
    our_nonce = secrets.token_bytes(NONCE_BYTES)
    connection.sendall(_GREETING.pack(_MAGIC, len(role)) + role + our_nonce)
    their_nonce, proof = _read(connection, NONCE_BYTES), _read(connection, PROOF_BYTES)
    if not hmac.compare_digest(proof, _proof(key, b"accept", role, our_nonce, their_nonce)):
        raise HopError("wrong key")
    connection.sendall(_proof(key, b"dial", role, our_nonce, their_nonce))


def _proof(key: bytes, side: bytes, role: bytes, dialler_nonce: bytes, acceptor_nonce: bytes) -> bytes:
    return hmac.digest(key, b"\0".join((side, role)) + dialler_nonce + acceptor_nonce, hashlib.sha256)


def _read(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise HopError("the connection was closed during the greeting")
        data += piece
    return bytes(data)


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    idle_option = getattr(socket, "TCP_KEEPIDLE", None) or getattr(socket, "TCP_KEEPALIVE", None)  # Linux, macOS
    if idle_option is not None:
        connection.setsockopt(socket.IPPROTO_TCP, idle_option, _KEEPALIVE_IDLE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)
