"""The agent's routes for models. Peers may ask what is here and read bytes; only a controller orders or deletes."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from typing import TYPE_CHECKING

import msgspec
from aiohttp import WSMsgType, web

from discovery import tls
from discovery.trust import Role
from runtime.agent.access import Route
from runtime.agent.models.byte_server import EVERYWHERE, LOOPBACK, ByteServer
from runtime.agent.models.fetching import Fetching
from runtime.agent.models.inventory import held_models
from runtime.agent.models.library import Library, hub_cache_folder
from runtime.agent.models.messages import (
    FETCH_PATH,
    HELD_PATH,
    MODELS_PATH,
    UNFINISHED_PATH,
    FetchDone,
    FetchFailed,
    FetchMessage,
    FetchOrder,
    FetchProgress,
    ModelOrder,
    Removed,
)
from runtime.errors import PomonaError
from runtime.models.models_folder import HomeStore

if TYPE_CHECKING:
    import ssl

    from discovery.home import Home
    from runtime.models.fetch.transfer import Progress, Transfer

log = logging.getLogger(__name__)

ORDER_BYTES = 1 << 20
_TELL_SECONDS = 0.25


class HomeKeys:
    """A node's keys as the byte server needs them."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def server_context(self) -> ssl.SSLContext:
        """Trusts whom the node trusts now."""
        own = self._home.identity
        trusted = [own.certificate_pem, *(node.certificate for node in self._home.trust.nodes)]
        return tls.hop_server_context(own.certificate_path, own.key_path, trusted)

    def may_read(self, fingerprint: str | None) -> bool:
        """Peers may, and whoever may do more."""
        return self._home.role_of(fingerprint) >= Role.PEER


class ModelService:
    """One node's models."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.library = Library(HomeStore(home.folder), hub_cache_folder())
        self._server = ByteServer(self.library, HomeKeys(home))
        self._fetching = Fetching(home, self.library)
        self._ports: dict[str, int] = {}
        self.routes = (
            Route("GET", MODELS_PATH, Role.PEER, self._models),
            Route("POST", HELD_PATH, Role.CONTROLLER, self._held),
            Route("GET", FETCH_PATH, Role.CONTROLLER, self._fetch),
            Route("DELETE", MODELS_PATH, Role.CONTROLLER, self._remove),
            Route("DELETE", UNFINISHED_PATH, Role.CONTROLLER, self._forget_unfinished),
        )

    def close(self) -> None:
        """Stop serving bytes."""
        self._server.close()

    async def _models(self, _request: web.Request) -> web.Response:
        models = await asyncio.to_thread(held_models, self.library)
        return _json(models)

    async def _held(self, request: web.Request) -> web.Response:
        order = await _decoded(request, ModelOrder)
        port = self._listen(request)
        return _json(await asyncio.to_thread(self._fetching.held, order, port))

    async def _remove(self, request: web.Request) -> web.Response:
        order = await _decoded(request, ModelOrder)
        freed = 0
        try:
            for copy in await asyncio.to_thread(self.library.copies, order.repository or order.name, order.revision):
                if copy.stored is not None:
                    freed += await asyncio.to_thread(self.library.store.remove, copy.stored)
        except PomonaError as error:
            raise web.HTTPConflict(text=str(error)) from None
        if not freed:
            raise web.HTTPNotFound(text=f"{order.name} is not in Pomona's store on this node.")
        return _json(Removed(freed))

    async def _forget_unfinished(self, request: web.Request) -> web.Response:
        order = await _decoded(request, ModelOrder)
        try:
            for copy in await asyncio.to_thread(self.library.copies, order.repository or order.name, order.revision):
                if copy.stored is not None:
                    await asyncio.to_thread(self.library.store.forget_unfinished, copy.stored)
        except PomonaError as error:
            raise web.HTTPConflict(text=str(error)) from None
        return web.Response(status=204)

    async def _fetch(self, request: web.Request) -> web.StreamResponse:
        """One order; closing the connection pauses it, and the same order goes on."""
        socket = web.WebSocketResponse(heartbeat=10.0, max_msg_size=ORDER_BYTES)
        await socket.prepare(request)
        frame = await socket.receive()
        if frame.type is not WSMsgType.TEXT:
            return socket
        try:
            order = msgspec.json.decode(frame.data, type=FetchOrder)
        except (msgspec.DecodeError, RecursionError) as error:
            await _say(socket, FetchFailed(f"This node does not understand the order ({error})."))
            return socket
        working = asyncio.create_task(self._obey(order, socket), name="fetch")
        hung_up = asyncio.create_task(_hung_up(socket))
        try:
            await asyncio.wait({working, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (working, hung_up):
                task.cancel()
            await asyncio.gather(working, hung_up, return_exceptions=True)
        await socket.close()
        return socket

    async def _obey(self, order: FetchOrder, socket: web.WebSocketResponse) -> None:
        try:
            await _say(socket, await self._done(order, socket))
        except PomonaError as error:
            await _say(socket, FetchFailed(str(error)))
        except ConnectionError:
            log.info("whoever ordered a model is gone")
        except Exception:
            log.exception("a fetch failed")
            await _say(socket, FetchFailed("This node could not fetch the model; look at its log."))

    async def _done(self, order: FetchOrder, socket: web.WebSocketResponse) -> FetchDone:
        telling: list[asyncio.Task[None]] = []
        try:
            return await self._fetching.fetch(
                order, lambda transfer: telling.append(asyncio.create_task(_tell(socket, transfer)))
            )
        finally:
            for task in telling:
                task.cancel()
            await asyncio.gather(*telling, return_exceptions=True)

    def _listen(self, request: web.Request) -> int:
        """Serve bytes from now on: where other machines reach this one, or on the loopback if the caller came by it."""
        address = request.transport.get_extra_info("sockname") if request.transport is not None else None
        host: str = address[0] if address else LOOPBACK
        reach = LOOPBACK if ipaddress.ip_address(host.partition("%")[0]).is_loopback else EVERYWHERE
        if reach not in self._ports:
            self._ports[reach] = self._server.start(reach)
        return self._ports[reach]


async def _tell(socket: web.WebSocketResponse, transfer: Transfer) -> None:
    while True:
        await asyncio.sleep(_TELL_SECONDS)
        await _say(socket, _progress(transfer.progress))


def _progress(progress: Progress) -> FetchProgress:
    return FetchProgress(
        progress.done_bytes,
        progress.total_bytes,
        progress.bytes_per_second,
        progress.seconds_left,
        dict(progress.from_source),
    )


async def _hung_up(socket: web.WebSocketResponse) -> None:
    async for _frame in socket:
        pass


async def _say(socket: web.WebSocketResponse, message: FetchMessage) -> None:
    with contextlib.suppress(ConnectionError):
        await socket.send_str(msgspec.json.encode(message).decode())


async def _decoded(request: web.Request, kind: type[ModelOrder]) -> ModelOrder:
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise web.HTTPBadRequest(text=f"This node does not understand that ({error}).") from None


def _json(body: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")
