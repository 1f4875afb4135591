"""A connection tells whether what was said has arrived, before anybody answers."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import aiohttp
import pytest

from runtime.agent.acknowledged import Connections, all_acknowledged


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_what_nobody_reads_has_arrived_all_the_same(listener):
    with socket.create_connection(listener.getsockname()) as connection:
        connection.sendall(b"question")
        assert all_acknowledged(connection)


def test_what_does_not_fit_there_has_not(listener):
    with socket.create_connection(listener.getsockname()) as connection:
        connection.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                connection.send(bytes(1 << 16))
        assert not all_acknowledged(connection)


def test_a_connection_that_is_over_or_not_yet_made_proves_nothing(listener):
    connection = socket.create_connection(listener.getsockname())
    connection.close()
    assert not all_acknowledged(connection)
    with socket.socket() as unmade:
        assert not all_acknowledged(unmade)


async def test_the_newest_connection_to_a_place_is_asked(listener):
    host, port = listener.getsockname()
    connections = Connections()
    assert not connections.acknowledged(host, port)
    async with aiohttp.ClientSession(connector=connections.connector()) as session:
        asking = asyncio.create_task(session.get(f"http://{host}:{port}/"))
        called, _ = await asyncio.to_thread(listener.accept)
        with called:
            await asyncio.to_thread(called.recv, 1)
            assert connections.acknowledged(host, port)
            called.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            async with await asking as response:
                assert response.status == 200
    assert not connections.acknowledged(host, port)
