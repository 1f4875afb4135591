"""The controller's end of a job on one agent."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Self

import aiohttp
import msgspec

from runtime.agent.acknowledged import all_acknowledged
from runtime.agent.calls import url_of
from runtime.agent.messages import (
    FRAME_LIMIT_BYTES,
    HEARTBEAT_SECONDS,
    JOB_PATH,
    AgentMessage,
    ControllerMessage,
    EndJob,
    EndRank,
    OrderRank,
    StartRank,
    decode_from_agent,
    encode,
)
from runtime.errors import PomonaError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from discovery.address import HostPort
    from runtime.engine.orders import Connect, Launch, Rebuild

_CONNECT_SECONDS = 5.0
_CLOSE_SECONDS = 2.0


class JobClient:
    """One open job: closing it ends its workers on that node."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, name: str) -> None:
        self._socket = socket
        self._name = name

    @classmethod
    async def open(cls, http: aiohttp.ClientSession, place: HostPort, context: ssl.SSLContext, name: str) -> Self:
        """Connect to the agent of the node called ``name``, whose certificate ``context`` pins.

        Raises :class:`PomonaError` if that is not possible.
        """
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                socket = await http.ws_connect(
                    url_of("https", place, JOB_PATH),
                    ssl=context,
                    heartbeat=HEARTBEAT_SECONDS,
                    max_msg_size=FRAME_LIMIT_BYTES,
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS),
                )
        except (aiohttp.WSServerHandshakeError, aiohttp.ServerDisconnectedError) as error:
            raise PomonaError(f"{name} does not trust this machine any more; pair with it again.") from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise PomonaError(f"{name} does not answer; check that Pomona runs there.") from error
        return cls(socket, name)

    async def start_rank(self, launch: Launch) -> None:
        """Have a worker started."""
        await self._send(StartRank(launch))

    async def order_rank(self, rank: int, order: Connect | Rebuild) -> None:
        """Pass an order to a worker."""
        await self._send(OrderRank(rank, order))

    async def end_rank(self, rank: int) -> None:
        """Have one worker ended."""
        await self._send(EndRank(rank))

    async def end(self) -> None:
        """Have all workers of the job on this node ended; ``JobEnded`` comes among the messages."""
        await self._send(EndJob())

    async def messages(self) -> AsyncIterator[AgentMessage]:
        """What the agent says, until the connection ends. Raises :class:`PomonaError` for what cannot be understood."""
        async for frame in self._socket:
            if frame.type is aiohttp.WSMsgType.TEXT:
                try:
                    yield decode_from_agent(frame.data)
                except msgspec.DecodeError as error:
                    raise PomonaError(
                        f"{self._name} runs another version of Pomona; install the same on both."
                    ) from error

    async def knock(self) -> None:
        """Send something that needs no answer: whether it arrives is what :attr:`arrives` then tells."""
        with contextlib.suppress(aiohttp.ClientError, ConnectionError):
            await self._socket.ping()

    @property
    def arrives(self) -> bool:
        """Whether the other machine's kernel has taken everything that was sent."""
        connection = self._socket.get_extra_info("socket")
        return connection is not None and all_acknowledged(connection)

    async def close(self) -> None:
        """Give up the lease."""
        await self._socket.close()

    async def _send(self, message: ControllerMessage) -> None:
        try:
            await self._socket.send_str(encode(message))
        except (aiohttp.ClientError, ConnectionError) as error:
            raise PomonaError(f"The connection to {self._name} was lost.") from error
