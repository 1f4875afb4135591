"""Asking an agent something over HTTP: bounded in time and bytes, and never before its certificate is pinned."""

from __future__ import annotations

import asyncio
import functools
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from discovery import tls
from runtime.agent.connector import Connector
from runtime.agent.trust_messages import HELLO_PATH, Hello, decode

if TYPE_CHECKING:
    from discovery.address import HostPort

MAX_ANSWER_BYTES = 64 << 10

_STRANGERS = 64


class NoAnswer(Exception):
    """What listens there is not the agent that it should be, or is not well."""


class Refused(Exception):
    """The agent is there and does not do this for us. ``reason`` is its own sentence, if it gave one."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def new_session(limit_seconds: float, connector: Connector | None = None) -> aiohttp.ClientSession:
    """For calls to agents; each gets its own TLS context."""
    return aiohttp.ClientSession(
        connector=connector or Connector(),
        headers={"Accept-Encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=limit_seconds),
        auto_decompress=False,  # a small body cannot become a large one
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
    )


async def call(
    session: aiohttp.ClientSession,
    method: str,
    place: HostPort,
    path: str,
    context: ssl.SSLContext,
    body: bytes | None = None,
    *,
    limit_bytes: int = MAX_ANSWER_BYTES,
) -> bytes:
    """One request. Raises :class:`Refused` for an answer that says no, and :class:`NoAnswer` for anything odd.

    A connection that ends after its handshake counts as refused: so ends one whose certificate is not trusted.
    """
    url = url_of("https", place, path)
    try:
        async with session.request(method, url, data=body, ssl=context, allow_redirects=False) as response:
            content = bytearray()
            async for chunk in response.content.iter_any():
                content += chunk
                if len(content) > limit_bytes:
                    raise NoAnswer(f"more than {limit_bytes} bytes")
            if HTTPStatus.BAD_REQUEST <= response.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise Refused(_sentence(content))
            if response.status not in {HTTPStatus.OK, HTTPStatus.NO_CONTENT}:
                raise NoAnswer(f"status {response.status}")
            return bytes(content)
    except (aiohttp.ClientConnectorError, aiohttp.ClientConnectorCertificateError, TimeoutError) as error:
        raise NoAnswer(repr(error)) from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ssl.SSLError) as error:
        raise Refused("") from error  # TLS 1.3 tells that our certificate is not trusted only after the handshake
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise NoAnswer(repr(error)) from error


async def first_contact(place: HostPort, limit_seconds: float) -> str:
    """The certificate that is shown there, as PEM: a claim until it is pinned and proved. Raises :class:`NoAnswer`."""
    try:
        async with asyncio.timeout(limit_seconds):
            try:
                _, writer = await asyncio.open_connection(place.host, place.port, ssl=tls.anonymous_context())
            except asyncio.CancelledError:
                await asyncio.sleep(0)  # in its next round the loop closes the socket, which may be its last
                raise
            try:
                shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            finally:
                writer.transport.abort()
                await asyncio.sleep(0)
    except (OSError, ssl.SSLError, TimeoutError, ValueError) as error:
        raise NoAnswer(repr(error)) from error
    if not shown:
        raise NoAnswer("no certificate")
    return ssl.DER_cert_to_PEM_cert(shown)


async def ask_hello(session: aiohttp.ClientSession, place: HostPort, certificate: str) -> Hello:
    """Who is there, without saying who we are. Raises :class:`NoAnswer` and :class:`Refused`."""
    body = await call(session, "GET", place, HELLO_PATH, _stranger_context(certificate))
    try:
        hello = decode(body, Hello)
    except ValueError as error:
        raise NoAnswer(repr(error)) from error
    if hello.id != tls.fingerprint_of_pem(certificate):
        raise NoAnswer("it says that it is another node than its certificate's")
    return hello


def nobody_listens(error: NoAnswer) -> bool:
    """Whether the machine itself said that no agent is there: it was quit or has crashed."""
    cause = error.__cause__
    return isinstance(
        cause.os_error if isinstance(cause, aiohttp.ClientConnectorError) else cause, ConnectionRefusedError
    )


@functools.lru_cache(_STRANGERS)
def _stranger_context(certificate: str) -> ssl.SSLContext:
    """The same one each time, so that connections can be used again."""
    return tls.anonymous_context(certificate)


def url_of(scheme: str, place: HostPort, path: str) -> URL:
    """The URL of something at an agent. A scope stays as it is, which aiohttp hands to the system."""
    host = f"[{place.host}]" if ":" in place.host else place.host
    return URL(f"{scheme}://{host}:{place.port}{path}", encoded=True)


def _sentence(content: bytes | bytearray) -> str:
    text = content[:300].decode(errors="replace")
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
