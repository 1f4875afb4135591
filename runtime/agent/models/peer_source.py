"""A peer as a source of chunks, over blocking TLS sockets in threads."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import queue
import socket
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import msgspec

from runtime.agent.models.silence import Watchman
from runtime.agent.models.wire import (
    MAX_MANIFEST_BYTES,
    PIECE_BYTES,
    Answer,
    OpenModel,
    ReadChunk,
    ReadSmall,
    receive_bytes,
    receive_into,
    receive_message,
    send_message,
)
from runtime.errors import PomonaError
from runtime.models.fetch.source import DamagedChunk, NotYet, SourceError
from runtime.models.manifest import decode_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from runtime.agent.models.wire import AnyRequest
    from runtime.models.fetch.journal import ChunkWriter
    from runtime.models.manifest import Manifest
    from runtime.models.parts import Part

T = TypeVar("T")

LANES = min(4, os.cpu_count() or 1)
"""Threads that each receive, decrypt, hash and write; more than there are cores only wait for each other."""
_CONNECT_SECONDS = 5.0
_SILENCE_SECONDS = 10.0
"""A peer that sends nothing for so long has lost its cable."""
_BEGIN_SECONDS = 30.0
"""So long a peer may take to begin fetching what it is to have."""


@dataclass(frozen=True, slots=True)
class PeerPlace:
    """Where a peer serves model bytes, and what it has of the model."""

    name: str
    host: str
    port: int
    context: ssl.SSLContext
    """Pins its certificate, and shows ours."""
    has: frozenset[str] = frozenset()
    will_have: frozenset[str] = frozenset()
    """Parts that it is told to fetch itself."""
    will_open: bool = False
    """Whether it will have the manifest, if it has not."""
    bytes_per_second: float = 100e6


class _Idle(NamedTuple):
    """A connection on which the model is open, and a buffer to use again: fresh memory would cost as much as TLS."""

    connection: ssl.SSLSocket
    buffer: memoryview


class PeerSource:
    """One revision of a model at one peer; an async context that closes its connections."""

    is_hub = False
    lanes = LANES

    def __init__(self, place: PeerPlace, model: str, revision: str) -> None:
        self.name = place.name
        self.bytes_per_second = place.bytes_per_second
        self._place = place
        self._model = OpenModel(model, revision)
        self._idle: queue.SimpleQueue[_Idle] = queue.SimpleQueue()
        self._watchman = Watchman()
        self._started_seconds = time.monotonic()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().connection.close()
        self._watchman.close()

    def offers(self, part: Part) -> bool:
        """What the order says that it has or will have."""
        return part.name in self._place.has or part.name in self._place.will_have

    async def manifest(self) -> Manifest:
        """The model's manifest as the peer has it, checked."""

        def ask() -> Manifest:
            line, text = self._connect(self._model)
            self._idle.put(line)
            manifest = decode_manifest(text, self.name)
            if manifest.revision != self._model.revision:
                raise SourceError(f"{self.name} has another revision of {self._model.name}.")
            return manifest

        return await self._in_thread(ask)

    async def chunk(self, part: Part, index: int, writer: ChunkWriter) -> bytes:
        """The chunk, checked against the SHA-256 that it had when the peer got it."""

        def ask() -> bytes:
            line = self._connected()
            try:
                send_message(line.connection, ReadChunk(part.name, index))
                answer = self._answer(line.connection, writer.missing_bytes)
                digest = self._copy(line, answer.byte_count, writer)
            except BaseException:
                line.connection.close()
                raise
            self._idle.put(line)
            if answer.status != "ok":
                raise self._absent(part.name, answer.status)
            if writer.missing_bytes or digest != answer.sha256:
                raise DamagedChunk(
                    f"A chunk of {part.name} came damaged from {self.name}: its disk or memory has a fault."
                )
            return digest

        return await self._in_thread(ask)

    def _copy(self, idle: _Idle, byte_count: int, writer: ChunkWriter) -> bytes:
        """From the line to the disk; each piece is hashed and written while it is in the processor's cache."""
        digest = hashlib.sha256()
        with self._watchman.blocking(idle.connection, _SILENCE_SECONDS) as line:
            for place in range(0, byte_count, PIECE_BYTES):
                piece = idle.buffer[: min(PIECE_BYTES, byte_count - place)]
                receive_into(idle.connection, piece, line.moved)
                digest.update(piece)
                writer.write(piece)
        return digest.digest()

    async def small(self, name: str) -> bytes:
        """A small file, as it is; the store checks it."""

        def ask() -> bytes:
            answer, data = self._ask(ReadSmall(name), 64 << 20)
            if answer.status == "ok":
                return bytes(data)
            if self._place.will_open and self._is_early:  # it asks the hub; nobody else is waited for
                raise NotYet
            raise SourceError(f"{self.name} does not have {name}.")

        return await self._in_thread(ask)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except ssl.SSLCertVerificationError as error:
            raise SourceError(f"Another node answers where {self.name} was; look for it again.") from error
        except OSError as error:
            raise SourceError(f"{self.name} is not reached any more ({error}).") from error

    def _connected(self) -> _Idle:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._connect(msgspec.structs.replace(self._model, with_manifest=False))[0]

    def _ask(self, request: AnyRequest, limit_bytes: int) -> tuple[Answer, bytearray]:
        line = self._connected()
        try:
            send_message(line.connection, request)
            found = self._receive(line.connection, limit_bytes)
        except BaseException:
            line.connection.close()
            raise
        self._idle.put(line)
        return found

    def _receive(self, connection: ssl.SSLSocket, limit_bytes: int) -> tuple[Answer, bytearray]:
        answer = self._answer(connection, limit_bytes)
        return answer, receive_bytes(connection, answer.byte_count)

    def _answer(self, connection: ssl.SSLSocket, limit_bytes: int) -> Answer:
        answer = receive_message(connection, Answer)
        if answer is None:
            raise ConnectionError("it hung up")
        if answer.byte_count > limit_bytes:
            raise SourceError(f"{self.name} sends more than was asked for.")
        return answer

    def _connect(self, model: OpenModel) -> tuple[_Idle, bytes]:
        """A connection on which the model is open, and the manifest if that was wanted."""
        plain = socket.create_connection((self._place.host, self._place.port), timeout=_CONNECT_SECONDS)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = self._place.context.wrap_socket(plain)
        except BaseException:
            plain.close()
            raise
        try:
            connection.settimeout(_SILENCE_SECONDS)
            send_message(connection, model)
            answer, text = self._receive(connection, MAX_MANIFEST_BYTES)
        except BaseException:
            connection.close()
            raise
        if answer.status != "ok":
            connection.close()
            raise self._absent(self._model.name, answer.status)
        return _Idle(connection, memoryview(bytearray(PIECE_BYTES))), bytes(text)

    @property
    def _is_early(self) -> bool:
        return time.monotonic() - self._started_seconds < _BEGIN_SECONDS

    def _absent(self, what: str, status: str) -> Exception:
        if status == "later" or (self._is_early and (self._place.will_have or self._place.will_open)):
            return NotYet()
        return SourceError(f"{self.name} does not have {what}.")


async def peer_manifest(sources: Collection[PeerSource]) -> Manifest | None:
    """The manifest from the first peer that has it; None if there is no such peer."""
    for source in sources:
        while True:
            try:
                return await source.manifest()
            except NotYet:
                await asyncio.sleep(0.3)
            except PomonaError:
                break
    return None
