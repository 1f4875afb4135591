"""What peers say to each other on the port for model bytes: a length, a message in MessagePack, and after it raw bytes.

The port speaks TLS between trusted nodes only. A model is named once on each connection; parts, chunks and small files
are then looked up in its manifest. No path ever crosses the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec

from runtime.models.fetch.source import SourceError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

LENGTH_BYTES = 4
MAX_MESSAGE_BYTES = 64 << 10
MAX_MANIFEST_BYTES = 256 << 20
PIECE_BYTES = 256 << 10
"""Handed to TLS at once."""

Status = Literal["ok", "later", "absent"]
_Name = Annotated[str, msgspec.Meta(max_length=200)]
T = TypeVar("T")


class Request(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of what is asked."""


class OpenModel(Request, frozen=True, tag="open"):
    """The model of everything after it; answered by its manifest in JSON, if that is wanted."""

    name: _Name
    revision: _Name
    with_manifest: bool = True
    """A model of many experts has one of megabytes, which only the first of several connections needs."""


class ReadChunk(Request, frozen=True, tag="chunk"):
    """A chunk of a part's file."""

    part: _Name
    index: Annotated[int, msgspec.Meta(ge=0, le=1 << 30)]


class ReadSmall(Request, frozen=True, tag="small"):
    """A small file of the manifest."""

    name: _Name


AnyRequest = OpenModel | ReadChunk | ReadSmall
ANY_REQUEST: Any = AnyRequest  # for receive_message, since a type checker takes no union for a type


class Answer(msgspec.Struct, frozen=True):
    """What comes before the bytes."""

    status: Status
    byte_count: Annotated[int, msgspec.Meta(ge=0, le=MAX_MANIFEST_BYTES)] = 0
    sha256: bytes = b""
    """Of a chunk as it was when this node got it."""


def send_message(connection: ssl.SSLSocket, message: msgspec.Struct) -> None:
    """One message."""
    data = msgspec.msgpack.encode(message)
    connection.sendall(len(data).to_bytes(LENGTH_BYTES, "big") + data)


def receive_message(connection: ssl.SSLSocket, kind: type[T]) -> T | None:
    """The next message; None at the end. Raises :class:`SourceError` for what is none, or :class:`OSError`."""
    prefix = receive_bytes(connection, LENGTH_BYTES, may_end=True)
    if not prefix:
        return None
    length = int.from_bytes(prefix, "big")
    if length > MAX_MESSAGE_BYTES:
        raise SourceError(f"A message of {length} bytes is none of Pomona's.")
    try:
        return msgspec.msgpack.decode(receive_bytes(connection, length), type=kind)
    except msgspec.DecodeError as error:
        raise SourceError(f"The other node speaks another version of Pomona ({error}).") from error


def receive_bytes(connection: ssl.SSLSocket, count: int, *, may_end: bool = False) -> bytearray:
    """Exactly so many bytes; none if the line ends before the first one and ``may_end``."""
    data = bytearray(count)
    if may_end and count:
        first = connection.recv_into(memoryview(data)[:1])
        if not first:
            return bytearray()
        receive_into(connection, memoryview(data)[1:])
    else:
        receive_into(connection, memoryview(data))
    return data


def receive_into(connection: ssl.SSLSocket, buffer: memoryview, moved: Callable[[], None] = lambda: None) -> None:
    """Fill ``buffer``, calling ``moved`` at each step. Raises :class:`ConnectionError` if the line ends before."""
    place = 0
    while place < len(buffer):
        got = connection.recv_into(buffer[place:])
        if not got:
            raise ConnectionError("the other node hung up")
        place += got
        moved()
