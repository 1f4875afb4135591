"""The agent's listening sockets: TLS for whoever calls, and little room for those who have not said who they are.

A caller with a certificate that is trusted has been proved by the handshake and may stay. All others share a few places
for a few seconds: a flood of silent connections ends the oldest of them, and costs neither memory nor a trusted caller.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING

from discovery.tls import peer_fingerprint

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

STRANGERS, STRANGERS_PER_HOST = 48, 16
"""Connections at once without a certificate, or whose handshake is not done: each may take 300 KB."""
HANDSHAKE_SECONDS = 5.0
STRANGER_SECONDS = 10.0
"""The longest that a stranger's connection lives; hello and pairing take less than a second."""

_BACKLOG = 64
_CLOSE_SECONDS = 1.0


class _Visitor:
    """A connection that has not shown a certificate yet, or shows none."""

    def __init__(self, host: str, connection: socket.socket) -> None:
        self.host = host
        self.connection: socket.socket | None = connection
        """Until asyncio has it: closed under a transport, its number would soon be another caller's."""
        self.greeting: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.limit: asyncio.TimerHandle | None = None

    @property
    def gone(self) -> bool:
        return self.transport is not None and self.transport.is_closing()

    def send_away(self) -> None:
        if self.limit is not None:
            self.limit.cancel()
        if self.transport is not None:
            self.transport.abort()
        elif self.greeting is not None:
            self.greeting.cancel()
        if self.connection is not None:
            self.connection.close()


class Door:
    """Listens where it is told to and joins each caller with a protocol of ``factory``.

    ``context`` is asked for the TLS context of every new connection, so that it follows whom the node trusts.
    """

    def __init__(self, factory: Callable[[], asyncio.Protocol], context: Callable[[], ssl.SSLContext]) -> None:
        self._factory = factory
        self._context = context
        self._listening: list[tuple[socket.socket, asyncio.Task[None]]] = []
        self._visitors: list[_Visitor] = []

    async def listen(self, hosts: Sequence[str], port: int) -> int:
        """Listen on these addresses instead of those before, all with one port; returns it.

        Raises :class:`OSError` if it is taken; then nothing listens. Callers that are connected already stay.
        """
        await self._stop_listening()
        try:
            for host in hosts:
                listener = _listener(host, port)
                port = listener.getsockname()[1]
                self._listening.append((listener, asyncio.create_task(self._accept(listener), name=f"door {host}")))
        except OSError:
            await self._stop_listening()
            raise
        return port

    async def close(self) -> None:
        """Stop listening, and send away who has not come in yet."""
        await self._stop_listening()
        greetings = [visitor.greeting for visitor in self._visitors if visitor.greeting is not None]
        for visitor in self._visitors:
            visitor.send_away()
        self._visitors.clear()
        await asyncio.gather(*greetings, return_exceptions=True)

    async def _stop_listening(self) -> None:
        listening, self._listening = self._listening, []
        for listener, accepting in listening:
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
            listener.close()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("cannot take a call: %s", error)
                await asyncio.sleep(0.1)  # out of file descriptors: the calls wait in the backlog
                continue
            visitor = _Visitor(address[0], connection)
            self._make_room(visitor.host)
            self._visitors.append(visitor)
            visitor.greeting = asyncio.create_task(self._greet(visitor), name=f"greeting {visitor.host}")

    def _make_room(self, host: str) -> None:
        self._visitors = [visitor for visitor in self._visitors if not visitor.gone]
        same = [visitor for visitor in self._visitors if visitor.host == host]
        crowd = same if len(same) >= STRANGERS_PER_HOST else self._visitors if len(self._visitors) >= STRANGERS else []
        if crowd:
            oldest = crowd[0]
            self._visitors.remove(oldest)
            oldest.send_away()

    async def _greet(self, visitor: _Visitor) -> None:
        loop = asyncio.get_running_loop()
        connection, visitor.connection = visitor.connection, None
        assert connection is not None  # it is ours until here
        try:
            transport, _ = await loop.connect_accepted_socket(
                self._factory,
                connection,
                ssl=self._context(),
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=_CLOSE_SECONDS,
            )
        except OSError as error:  # timeouts, lost connections and everything of TLS are among them
            log.debug("%s did not come in: %s", visitor.host, error)
            self._forget(visitor)
            return
        except BaseException:
            self._forget(visitor)
            raise
        if peer_fingerprint(transport.get_extra_info("ssl_object")) is None:
            visitor.transport = transport
            visitor.limit = loop.call_later(STRANGER_SECONDS, transport.abort)
        else:
            self._forget(visitor)

    def _forget(self, visitor: _Visitor) -> None:
        if visitor in self._visitors:
            self._visitors.remove(visitor)


def _listener(host: str, port: int) -> socket.socket:
    """A socket that listens on an address of either family; an IPv6 one leaves IPv4 to another."""
    family, kind, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICHOST
    )[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
