"""Nothing is left of a session with an agent that has stopped answering."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from contextlib import suppress

import aiohttp
import pytest

from discovery import tls
from discovery.identity import temporary_identity
from runtime.agent.connector import Connector


@pytest.fixture
def stopped_agent():
    """Greets, and then neither reads nor says goodbye."""
    with temporary_identity() as identity, socket.create_server(("127.0.0.1", 0)) as listening:
        context = tls.server_context(identity.certificate_path, identity.key_path, [])
        called: list[socket.socket] = []

        async def greet() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = await asyncio.to_thread(listening.accept)
                    called.append(await asyncio.to_thread(context.wrap_socket, connection, server_side=True))

        yield listening.getsockname(), greet
        for connection in called:
            connection.close()


async def test_a_request_that_was_called_off_leaves_no_connection(stopped_agent):
    (host, port), greet = stopped_agent
    greeting = asyncio.create_task(greet())
    timeout = aiohttp.ClientTimeout(total=0.3)
    connector = Connector()
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await session.get(f"https://{host}:{port}/", ssl=tls.anonymous_context())
        made = list(connector._sockets)
        assert [one.fileno() >= 0 for one in made] == [True] * 3  # they still wait for a goodbye
    assert [one.fileno() >= 0 for one in made] == [False] * 3
    del made
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.collect()
    with socket.create_connection((host, port)):
        pass  # wakes the last accept
    greeting.cancel()
    with suppress(asyncio.CancelledError):
        await greeting
