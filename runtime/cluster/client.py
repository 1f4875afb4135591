"""A front end's handle on a session: starts the controller process and speaks with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from typing import TYPE_CHECKING, Self

import aiohttp
import msgspec

from resources import starting
from runtime.cluster.launch import SessionRequest
from runtime.cluster.messages import (
    FRAME_LIMIT_BYTES,
    SESSION_PATH,
    ClientMessage,
    Ended,
    Failed,
    Opened,
    ServerMessage,
    Stop,
)
from runtime.cluster.running_note import running_session
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from runtime.cluster.nodes import KnownNode
    from runtime.cluster.running_note import RunningNote
    from runtime.engine.orders import HopKind
    from runtime.planning.values import Plan
    from runtime.server.options import ApiOptions

log = logging.getLogger(__name__)

_OPEN_SECONDS = 30.0
_CLOSE_SECONDS = 15.0
_KILL_SECONDS = 3.0
_LOOK_SECONDS = 0.1

_decoder = msgspec.json.Decoder(ServerMessage)
_encoder = msgspec.json.Encoder()


class SessionClient:
    """One session. The controller ends when :meth:`close` is called, or, unless it outlives it, with this process.

    There is no heartbeat: both ends are on this machine, where a lost process closes its socket at once.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process | None,
        http: aiohttp.ClientSession,
        socket: aiohttp.ClientWebSocketResponse,
        gone: Callable[[], bool] = bool,
    ) -> None:
        self._process = process
        self._gone = gone
        self._http = http
        self._socket = socket

    @classmethod
    async def start(  # noqa: PLR0913  keywords, each with a default
        cls,
        plan: Plan,
        model_folder: Path,
        nodes: Sequence[KnownNode],
        home: Path,
        *,
        keep_running: bool = True,
        hops: HopKind = "tls",
        folder_on: Sequence[str] | None = None,
        outlives: bool = False,
        api: ApiOptions | None = None,
    ) -> Self:
        """Start a controller for ``plan`` and connect to it; loading goes on and is told by :meth:`events`.

        ``home`` is the folder of the identity by which the nodes know this machine. ``folder_on`` are the ids of the
        nodes that may use ``model_folder`` in place, None all that see it; the others fetch what their layers need.
        With ``api`` programs reach the model over HTTP; ``Serving`` tells where.
        Raises :class:`PomonaError` when there can be no session.
        """
        process = await asyncio.create_subprocess_exec(
            *starting.pomona("controller"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        key = secrets.token_urlsafe(32)
        where = None if folder_on is None else tuple(folder_on)
        request = SessionRequest(
            plan, str(model_folder), tuple(nodes), str(home), key, keep_running, hops, where, outlives, api
        )
        http = aiohttp.ClientSession()
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                port = await _port_of(process, request)
                socket = await _connect(http, port, key)
        except BaseException as error:
            await http.close()
            await _end(process)
            if isinstance(error, aiohttp.ClientError | TimeoutError):
                raise PomonaError("The controller of the model did not start; look at the log.") from error
            raise
        return cls(process, http, socket)

    @classmethod
    async def attach(cls, home: Path, running: RunningNote) -> Self:
        """Connect to a session that an earlier front end started. Raises :class:`PomonaError` if it is gone."""
        http = aiohttp.ClientSession()
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                socket = await _connect(http, running.port, running.key)
        except BaseException as error:
            await http.close()
            if isinstance(error, aiohttp.ClientError | TimeoutError):
                raise PomonaError("The model that ran here is gone; start it again.") from error
            raise
        return cls(None, http, socket, lambda: running_session(home) is None)

    async def send(self, message: ClientMessage) -> None:
        """Say something. Raises :class:`PomonaError` when the controller is gone."""
        try:
            await self._socket.send_str(_encoder.encode(message).decode())
        except (aiohttp.ClientError, ConnectionError) as error:
            raise PomonaError("The session is over; start the model again.") from error

    async def events(self) -> AsyncIterator[ServerMessage]:
        """Everything that happens, until ``Failed`` or ``Ended``, which always comes last."""
        async for frame in self._socket:
            if frame.type is not aiohttp.WSMsgType.TEXT:
                continue
            message = _decoder.decode(frame.data)
            yield message
            if isinstance(message, Failed | Ended):
                return
        yield Failed("The controller of the model ended unexpectedly; start the model again.")

    async def stop(self) -> Ended | Failed:
        """End the session, and say how it ended; for whoever does not listen to :meth:`events` meanwhile."""
        await self.send(Stop())
        async for event in self.events():
            if isinstance(event, Failed | Ended):
                return event
        raise AssertionError("one of these always comes last")

    async def leave(self) -> None:
        """Let a session that outlives this front end go on without it."""
        await self._socket.close()
        await self._http.close()

    async def close(self) -> None:
        """End the session and the controller; returns when the process is gone."""
        with contextlib.suppress(PomonaError):
            await self.send(Stop())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._over()
        await self._socket.close()
        await self._http.close()
        if self._process is not None:
            await _end(self._process)

    async def _over(self) -> None:
        if self._process is not None:
            await self._process.wait()
            return
        while not self._gone():  # noqa: ASYNC110  nobody tells of the end of another's child
            await asyncio.sleep(_LOOK_SECONDS)


async def _connect(http: aiohttp.ClientSession, port: int, key: str) -> aiohttp.ClientWebSocketResponse:
    return await http.ws_connect(
        f"http://127.0.0.1:{port}{SESSION_PATH}",
        headers={"Authorization": f"Bearer {key}"},
        max_msg_size=FRAME_LIMIT_BYTES,
    )


async def _port_of(process: asyncio.subprocess.Process, request: SessionRequest) -> int:
    assert process.stdin is not None
    assert process.stdout is not None  # both were asked for
    process.stdin.write(_encoder.encode(request) + b"\n")
    line = await process.stdout.readline()
    try:
        opened = msgspec.json.decode(line, type=Opened)
    except msgspec.DecodeError as error:
        raise PomonaError("The controller of the model did not start; look at the log.") from error
    if opened.error:
        raise PomonaError(opened.error)
    return opened.port


async def _end(process: asyncio.subprocess.Process) -> None:
    """Make sure that a controller is gone: close its pipe, then kill it."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(_KILL_SECONDS):
            await process.wait()
    except TimeoutError:
        log.warning("the controller did not end by itself")
        process.kill()
        await process.wait()
