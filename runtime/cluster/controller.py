"""The controller process: one running model, and a loopback WebSocket for its front ends.

Started with one JSON line (:class:`SessionRequest`) on standard input; answers with one JSON line that names its port.
When standard input ends, or a front end says stop, the session ends and with it the process. One that outlives its
front end goes on until it is told to stop.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from aiohttp import WSMsgType, web

from runtime import owner
from runtime.app_nap import stay_responsive
from runtime.cluster.launch import SessionRequest
from runtime.cluster.messages import (
    FRAME_LIMIT_BYTES,
    SESSION_PATH,
    Cancel,
    Chat,
    ClientMessage,
    Opened,
    Rebalance,
    Resplit,
    Serve,
    ServeRefused,
    ServerMessage,
    Serving,
    Stop,
)
from runtime.cluster.running_note import RunningNote, noted_session
from runtime.cluster.session import Session
from runtime.cluster.transcript import Transcript
from runtime.cluster.versions import version_refusal
from runtime.errors import PomonaError
from runtime.models.planning_layout import read_planning_layout
from runtime.server.application import ApiServer

if TYPE_CHECKING:
    from runtime.models.layout import ModelLayout
    from runtime.server.options import ApiOptions

log = logging.getLogger(__name__)

_UNREAD_LIMIT = 50_000

_client_decoder = msgspec.json.Decoder(ClientMessage)
_encoder = msgspec.json.Encoder()


def main() -> int:
    """Run one session to its end."""
    stay_responsive()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stderr)
    try:
        request = msgspec.json.decode(sys.stdin.buffer.readline(), type=SessionRequest)
        layout = read_planning_layout(Path(request.model_folder))
    except msgspec.DecodeError as error:
        return _refuse(f"The controller was asked for something that it does not understand ({error}).")
    except PomonaError as error:
        return _refuse(str(error))
    if refusal := version_refusal(node.resources for node in request.planned_nodes):
        return _refuse(refusal)
    asyncio.run(_serve(request, layout))
    # Not by the interpreter's own end: the thread that read the tokenizer used MLX, which asks for the GIL when such a
    # thread ends, and that aborts the process if the interpreter is being taken down just then.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def _refuse(reason: str) -> int:
    sys.stdout.write(_encoder.encode(Opened(error=reason)).decode() + "\n")
    return 1


async def _serve(request: SessionRequest, layout: ModelLayout) -> None:
    controller = _Controller(request, layout)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, controller.session.stop)
    try:
        port = await controller.listen()
    except PomonaError as error:
        sys.stdout.write(_encoder.encode(Opened(error=str(error))).decode() + "\n")
        controller.session.stop()
        await controller.session.run()
        return
    sys.stdout.write(_encoder.encode(Opened(port)).decode() + "\n")
    sys.stdout.flush()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(controller.close)
        if request.outlives:
            note = RunningNote(port, request.key, os.getpid(), request.model_folder, request.plan, request.nodes)
            stack.enter_context(noted_session(Path(request.home), note))
        else:
            owned = asyncio.create_task(owner.gone(), name="owner")
            owned.add_done_callback(lambda _: controller.session.stop())
            stack.callback(owned.cancel)
        await controller.session.run()


class _Controller:
    def __init__(self, request: SessionRequest, layout: ModelLayout) -> None:
        self.session = Session(request, layout, self._publish)
        self._key = request.key
        self._transcript = Transcript()
        self._clients: dict[web.WebSocketResponse, asyncio.Queue[ServerMessage | None]] = {}
        self._runner: web.AppRunner | None = None
        self._api = ApiServer(self.session, request.api) if request.api else None

    async def listen(self) -> int:
        """Open the API if one is wanted, then the port of front ends, which is returned.

        Raises :class:`PomonaError` if the API's port cannot be opened.
        """
        if self._api is not None:
            await self._api.open()
        application = web.Application()
        application.router.add_get(SESSION_PATH, self._attend)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        port: int = self._runner.addresses[0][1]
        return port

    async def close(self) -> None:
        """Let every front end read to the end, then stop listening."""
        for unread in self._clients.values():
            unread.put_nowait(None)
        if self._api is not None:
            await self._api.close()
        assert self._runner is not None  # close follows listen
        await self._runner.cleanup()

    def _publish(self, message: ServerMessage) -> None:
        self._transcript.take(message)
        for socket, unread in list(self._clients.items()):
            if unread.qsize() < _UNREAD_LIMIT:
                unread.put_nowait(message)
            else:
                log.warning("a front end does not read and is left behind")
                del self._clients[socket]

    async def _attend(self, request: web.Request) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if not hmac.compare_digest(f"Bearer {self._key}".encode(), given):
            raise web.HTTPUnauthorized(text="This controller needs its key.")
        socket = web.WebSocketResponse(max_msg_size=FRAME_LIMIT_BYTES)
        await socket.prepare(request)
        unread: asyncio.Queue[ServerMessage | None] = asyncio.Queue()
        for message in (*self._serving(), *self.session.snapshot(), *self._transcript.answered()):
            unread.put_nowait(message)
        self._clients[socket] = unread
        sending = asyncio.create_task(_send(socket, unread), name="front end")
        try:
            async for frame in socket:
                if frame.type is WSMsgType.TEXT:
                    await self._obey(socket, frame.data)
        finally:
            self._clients.pop(socket, None)
            sending.cancel()
        return socket

    def _serving(self) -> list[ServerMessage]:
        """Where the API is, which is known from the start and stays."""
        if self._api is None:
            return []
        return [Serving(self._api.address, self.session.model_names[0], self._api.options.api_key)]

    async def _obey(self, socket: web.WebSocketResponse, text: str) -> None:
        try:
            message = _client_decoder.decode(text)
        except msgspec.DecodeError as error:
            await socket.close(code=1003, message=str(error).encode()[:100])
            return
        match message:
            case Chat():
                self._transcript.begin(message)
                await self.session.chat(message)
            case Cancel():
                self.session.cancel(message)
            case Resplit():
                self.session.resplit(message)
            case Rebalance():
                await self.session.rebalance()
            case Serve(options):
                await self._serve_as(options)
            case Stop():
                self.session.stop()

    async def _serve_as(self, options: ApiOptions) -> None:
        """Open the API elsewhere or for others; if that cannot be, it is opened as it was."""
        before, self._api = self._api, ApiServer(self.session, options)
        if before is not None:
            await before.close()
        try:
            await self._api.open()
        except PomonaError as error:
            self._publish(ServeRefused(str(error)))
            await self._api.close()
            self._api = ApiServer(self.session, before.options) if before is not None else None
            if self._api is not None:
                await self._api.open()
        for message in self._serving():
            self._publish(message)


async def _send(socket: web.WebSocketResponse, unread: asyncio.Queue[ServerMessage | None]) -> None:
    while (message := await unread.get()) is not None:
        try:
            await socket.send_str(_encoder.encode(message).decode())
        except ConnectionError:
            return
    await socket.close()
