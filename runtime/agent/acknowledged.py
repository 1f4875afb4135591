"""Tells a machine that is gone from one that is busy, by asking the kernel what it knows.

A question that the other kernel has acknowledged has arrived: the cable is in, the machine is awake, and the process
has not ended, for its kernel would have closed the connection. The answer may take as long as the machine is busy.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from runtime.agent.connector import Connector

if TYPE_CHECKING:
    from asyncio.trsock import TransportSocket

    from aiohttp.connector import AddrInfoType

_QUEUED_ON_LINUX = 0x5411
"""SIOCOUTQ of ``tcp(7)``: bytes not sent or not acknowledged."""
_QUEUED_ON_DARWIN = 0x1024
"""SO_NWRITE of ``sys/socket.h``: the same."""


class Connections:
    """Remembers the newest connection to each place. Give :meth:`connector` to the session that makes them."""

    def __init__(self) -> None:
        self._sockets: WeakValueDictionary[tuple[str, int], socket.socket] = WeakValueDictionary()

    def connector(self) -> Connector:
        """Makes connections that are remembered here."""
        return Connector(on_socket=self._remember)

    def acknowledged(self, host: str, port: int) -> bool:
        """Whether all that was said to ``host`` has arrived there, on a connection that is still open."""
        connection = self._sockets.get((host.partition("%")[0], port))
        return connection is not None and all_acknowledged(connection)

    def _remember(self, address: AddrInfoType, made: socket.socket) -> None:
        host, port = address[4][:2]
        self._sockets[str(host).partition("%")[0], int(port)] = made


def all_acknowledged(connection: socket.socket | TransportSocket) -> bool:
    """Whether a TCP connection is established and the other kernel has taken everything that was written to it."""
    try:
        connection.getpeername()  # fails while it is being made, and when it is over
        if sys.platform == "darwin":
            queued = connection.getsockopt(socket.SOL_SOCKET, _QUEUED_ON_DARWIN)
        else:
            (queued,) = struct.unpack("i", fcntl.ioctl(connection, _QUEUED_ON_LINUX, bytes(4)))
    except (OSError, ValueError):
        return False
    return bool(queued == 0)
