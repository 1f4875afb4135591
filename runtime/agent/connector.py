"""Connections to agents that are all over when their session is closed."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING
from weakref import WeakSet

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Callable
    from ssl import SSLContext

    from aiohttp.connector import AddrInfoType

_ROUNDS = 10
"""Of the loop: in one a transport reads the end of its socket, in the next ones it closes it."""


class Connector(aiohttp.TCPConnector):
    """A connector whose :meth:`close` also ends what aiohttp has let go of.

    A request that is called off, or that a machine answers too late, leaves a TLS connection that says goodbye and
    waits up to half a minute for the other end to do the same; one that has stopped never does.
    """

    def __init__(
        self,
        context: SSLContext | None = None,
        on_socket: Callable[[AddrInfoType, socket.socket], None] | None = None,
        *,
        force_close: bool = False,
    ) -> None:
        super().__init__(ssl=context or True, socket_factory=self._make, force_close=force_close)
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._on_socket = on_socket

    async def close(self, *, abort_ssl: bool = False) -> None:
        """End every connection at once."""
        await super().close(abort_ssl=abort_ssl)
        for made in self._sockets:
            with contextlib.suppress(OSError):  # closed already, or never connected
                made.shutdown(socket.SHUT_RDWR)
        for _ in range(_ROUNDS):
            if not any(made.fileno() >= 0 for made in self._sockets):
                return
            await asyncio.sleep(0)

    def _make(self, address: AddrInfoType) -> socket.socket:
        family, kind, protocol, _name, _place = address
        made = socket.socket(family, kind, protocol)
        self._sockets.add(made)
        if self._on_socket is not None:
            self._on_socket(address, made)
        return made
