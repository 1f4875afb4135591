"""The routes by which trust comes and goes: hello, pairing by a code, introductions, farewells."""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec
from aiohttp import web

from discovery import tls
from discovery.address import HostPort
from discovery.pairing import Busy, CodeDesk, HostExchange, Locked, NoCode, WrongCode
from discovery.trust import Role
from runtime.agent.access import Route, fingerprint_of
from runtime.agent.trust_messages import (
    BODY_LIMIT_BYTES,
    CODE_PATH,
    HELLO_PATH,
    PAIR_PATH,
    PEERS_PATH,
    PROVE_PATH,
    TRUST_PATH,
    Hello,
    PairAnswer,
    Paired,
    PairProof,
    PairStart,
    Peers,
    ShownCode,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from discovery.home import Home

log = logging.getLogger(__name__)

ANSWER_SECONDS = 0.25
"""No word about a code is answered sooner: how long we compute tells nothing."""
BODY_SECONDS = 5.0

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class _Open:
    """An exchange that waits for the guest's proof."""

    exchange_id: str
    exchange: HostExchange
    guest: PairStart
    remote: str


class TrustRoutes:
    """Serves them for one node. ``name`` is what people call it; ``on_change`` is called when a code comes or goes."""

    def __init__(self, home: Home, name: str, version: str, on_change: Callable[[], None]) -> None:
        self._home = home
        self._name = name
        self._version = version
        self._on_change = on_change
        self._desk = CodeDesk()
        self._open: _Open | None = None

    @property
    def routes(self) -> tuple[Route, ...]:
        return (
            Route("GET", HELLO_PATH, Role.STRANGER, self._hello),
            Route("POST", PAIR_PATH, Role.STRANGER, self._in_even_time(self._pair)),
            Route("POST", PROVE_PATH, Role.STRANGER, self._in_even_time(self._prove)),
            Route("POST", CODE_PATH, Role.OWNER, self._show_code),
            Route("DELETE", CODE_PATH, Role.OWNER, self._hide_code),
            Route("PUT", PEERS_PATH, Role.CONTROLLER, self._introduce),
            Route("DELETE", TRUST_PATH, Role.CONTROLLER, self._forget),
        )

    @property
    def shows_code(self) -> bool:
        """Whether someone may pair now, or is just doing so."""
        return self._desk.seconds_left(_now()) > 0 or self._open is not None

    async def _hello(self, _request: web.Request) -> web.StreamResponse:
        return _json(Hello(self._home.identity.node_id, self._name, self._version, self.shows_code))

    async def _pair(self, request: web.Request) -> web.StreamResponse:
        start = await read_body(request, PairStart)
        try:
            guest_id = tls.fingerprint_of_pem(start.certificate)
        except ValueError:
            raise web.HTTPBadRequest(text="That is no certificate.") from None
        try:
            code = self._desk.take_try(_now())
        except NoCode:
            raise web.HTTPConflict(text=f"{self._name} shows no code now; have it show one.") from None
        except Busy:
            raise web.HTTPConflict(text=f"{self._name} is pairing with another node; try again in a moment.") from None
        try:
            # Pure Python, tens of milliseconds: not on the loop.
            exchange = await asyncio.to_thread(HostExchange, code, self._home.identity.node_id, guest_id, start.message)
        except WrongCode:
            self._desk.end_try()
            raise web.HTTPBadRequest(text="That is no pairing message.") from None
        self._open = _Open(secrets.token_hex(16), exchange, start, request.remote or "")
        self._on_change()
        return _json(PairAnswer(self._open.exchange_id, exchange.message, exchange.proof))

    async def _prove(self, request: web.Request) -> web.StreamResponse:
        proof = await read_body(request, PairProof)
        opened = self._open
        if opened is None or proof.exchange != opened.exchange_id or not self._desk.busy(_now()):
            raise web.HTTPConflict(text="No pairing is going on.")
        self._open = None
        if not opened.exchange.accepts(proof.proof):
            self._desk.end_try()
            self._on_change()
            raise web.HTTPForbidden(text="The code is wrong.")
        self._desk.succeed()
        guest = opened.guest
        addresses = [HostPort(opened.remote, guest.port)] if guest.port and opened.remote else []
        try:
            node = self._home.trust.pair(guest.certificate, guest.name, addresses)
        except ValueError as error:
            raise web.HTTPConflict(text=f"{self._name} cannot pair: {error}.") from None
        log.info("paired with %s (%s)", node.name, node.node_id[:12])
        self._on_change()
        return _json(Paired(self._name))

    async def _show_code(self, _request: web.Request) -> web.StreamResponse:
        try:
            code = self._desk.show(_now())
        except Locked as error:
            raise web.HTTPConflict(
                text=f"Too many wrong codes were tried; {self._name} shows a new one in {error.seconds:.0f} s."
            ) from None
        self._open = None
        self._on_change()
        return _json(ShownCode(code, self._desk.seconds_left(_now())))

    async def _hide_code(self, _request: web.Request) -> web.StreamResponse:
        self._desk.hide()
        self._on_change()
        return web.Response(status=204)

    async def _introduce(self, request: web.Request) -> web.StreamResponse:
        peers = await read_body(request, Peers)
        controller = fingerprint_of(request) or ""
        try:
            self._home.trust.introduce(controller, ((peer.certificate, peer.name) for peer in peers.nodes))
        except ValueError as error:
            raise web.HTTPBadRequest(text=f"These nodes cannot be introduced: {error}.") from None
        return web.Response(status=204)

    async def _forget(self, request: web.Request) -> web.StreamResponse:
        """The caller trusts us no more, and asks for the same."""
        self._home.trust.remove(fingerprint_of(request) or "", revoke=False)
        self._on_change()
        return web.Response(status=204)

    def _in_even_time(
        self, handler: Callable[[web.Request], Coroutine[None, None, web.StreamResponse]]
    ) -> Callable[[web.Request], Coroutine[None, None, web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            due = _now() + ANSWER_SECONDS
            try:
                return await handler(request)
            finally:
                await asyncio.sleep(due - _now())

        return handle


async def read_body(request: web.Request, kind: type[T]) -> T:
    """The JSON body of a request, of this kind, within five seconds. Raises the HTTP error that fits otherwise."""
    if (request.content_length or 0) > BODY_LIMIT_BYTES:
        raise web.HTTPRequestEntityTooLarge(BODY_LIMIT_BYTES, request.content_length or 0)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return decode(await request.read(), kind)
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    except ValueError as error:
        raise web.HTTPBadRequest(text=f"This node does not understand that ({str(error)[:200]}).") from None


def _json(message: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(message), content_type="application/json")


def _now() -> float:
    return asyncio.get_running_loop().time()
