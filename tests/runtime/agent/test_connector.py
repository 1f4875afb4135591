"""Nothing is left of a session with an agent that has stopped answering."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import aiohttp
import pytest

from discovery import tls
from discovery.identity import temporary_identity
from runtime.agent.connector import Connector

if TYPE_CHECKING:
    import ssl

CALLS = 3


@pytest.fixture
def stopped_agent():
    """Greets so many callers, and then neither reads nor says goodbye."""
    with temporary_identity() as identity, socket.create_server(("127.0.0.1", 0)) as listening:
        context = tls.server_context(identity.certificate_path, identity.key_path, [])
        listening.settimeout(30)
        called: list[ssl.SSLSocket] = []

        def greet() -> None:
            for _ in range(CALLS):
                connection, _ = listening.accept()
                called.append(context.wrap_socket(connection, server_side=True))

        greeting = threading.Thread(target=greet)
        greeting.start()
        yield listening.getsockname()
        greeting.join()
        for connection in called:
            connection.close()


async def test_a_request_that_was_called_off_leaves_no_connection(stopped_agent):
    host, port = stopped_agent
    connector = Connector()
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=1.0)) as session:
        for _ in range(CALLS):
            with pytest.raises(TimeoutError):
                await session.get(f"https://{host}:{port}/", ssl=tls.anonymous_context())
        made = list(connector._sockets)
        assert [one.fileno() >= 0 for one in made] == [True] * CALLS  # they still wait for a goodbye
    assert [one.fileno() >= 0 for one in made] == [False] * CALLS
