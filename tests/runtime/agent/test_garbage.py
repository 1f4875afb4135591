"""Whatever strangers send: the agent stays up, its memory stays flat, and a paired node is served meanwhile."""

from __future__ import annotations

import asyncio
import os
import ssl
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest

from discovery import tls
from discovery.address import HostPort
from discovery.home import temporary_home
from runtime.agent.calls import call, new_session
from runtime.agent.door import STRANGERS_PER_HOST
from runtime.agent.messages import NODE_PATH
from runtime.agent.trust_messages import PAIR_PATH
from runtime.cli.virtual_nodes import VirtualNode, VirtualNodes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MIB = 1 << 20
ANNOUNCED_BYTES = 8 << 30
FLAT_BYTES = 48 * MIB
"""More than a full house of strangers' TLS buffers; a body that is kept would be twenty times that."""


class Target:
    """A real agent in a process of its own, and a node that is paired with it."""

    def __init__(self, home, agent) -> None:
        self.home = home
        self.place = HostPort("127.0.0.1", agent.port)
        self.pem = agent.certificate
        self.process = psutil.Process(agent.pid)

    def memory_bytes(self) -> int:
        return self.process.memory_info().rss

    async def serve_peer(self) -> None:
        """What a paired node asks for comes, on a new connection."""
        async with new_session(30) as session:
            body = await call(session, "GET", self.place, NODE_PATH, self.home.context_for(self.pem))
        assert msgspec.json.decode(body)["node_id"] == tls.fingerprint_of_pem(self.pem)

    async def connect(
        self, stack: AsyncExitStack, *, with_tls: bool
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = tls.anonymous_context(self.pem) if with_tls else None
        reader, writer = await asyncio.open_connection(self.place.host, self.place.port, ssl=context)
        stack.push(lambda *_: writer.transport.abort())  # and keep it till then
        return reader, writer


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    log = tmp_path_factory.mktemp("garbage") / "log"
    with temporary_home() as home, VirtualNodes([VirtualNode("Target", MIB << 10)], home, log) as nodes:
        (agent,) = nodes.started()
        yield Target(home, agent)
        assert "Traceback" not in log.read_text()


@pytest.fixture
async def target(running) -> AsyncIterator[Target]:
    """The agent; checks afterwards that it is as it was."""
    for _ in range(3):
        await running.serve_peer()
    before = running.memory_bytes()
    yield running
    await running.serve_peer()
    assert running.process.is_running()
    assert running.memory_bytes() - before < FLAT_BYTES


async def closed_by_peer(reader: asyncio.StreamReader) -> bytes:
    """What still came before the other end closed."""
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except (ConnectionError, ssl.SSLError):
        return b""


@pytest.mark.parametrize("with_tls", [False, True], ids=["plain", "in TLS"])
async def test_random_bytes(target, with_tls):
    async with AsyncExitStack() as stack:
        for size in (1, 100, 10_000, 200_000):
            reader, writer = await target.connect(stack, with_tls=with_tls)
            try:
                writer.write(os.urandom(size) + b"\r\n\r\n")
                await writer.drain()
                answer = await closed_by_peer(reader)
            except (ConnectionError, ssl.SSLError):
                continue
            assert not with_tls or not answer or answer.split()[1] == b"400"
        await target.serve_peer()


async def test_half_a_handshake_from_many(target):
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(20)
    async with AsyncExitStack() as stack:
        callers = []
        for _ in range(4 * STRANGERS_PER_HOST):
            reader, writer = await target.connect(stack, with_tls=False)
            writer.write(hello)
            callers.append(reader)
        await target.serve_peer()
        assert [await closed_by_peer(reader) for reader in callers] == [b""] * len(callers)


async def test_silent_strangers_in_tls_are_sent_away(target):
    async with AsyncExitStack() as stack:
        callers = [(await target.connect(stack, with_tls=True))[0] for _ in range(2 * STRANGERS_PER_HOST)]
        await target.serve_peer()
        assert [await closed_by_peer(reader) for reader in callers] == [b""] * len(callers)


@pytest.mark.parametrize("path", [PAIR_PATH, NODE_PATH, "/v1/nothing"])
async def test_gigabytes_are_announced_and_sent_until_it_is_refused(target, path):
    async with AsyncExitStack() as stack:
        reader, writer = await target.connect(stack, with_tls=True)
        writer.write(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {ANNOUNCED_BYTES}\r\n\r\n".encode())
        sent = 0
        try:
            while sent < ANNOUNCED_BYTES and not writer.transport.is_closing():
                writer.write(bytes(MIB))
                await writer.drain()
                await asyncio.sleep(0)  # a lost connection is told by the loop alone
                sent += MIB
        except (ConnectionError, ssl.SSLError):
            pass
        assert sent < ANNOUNCED_BYTES
        answer = await closed_by_peer(reader)
        assert not answer or answer.split()[1] in {b"403", b"413"}
        await target.serve_peer()


async def test_a_chunked_body_without_end(target):
    async with AsyncExitStack() as stack:
        reader, writer = await target.connect(stack, with_tls=True)
        writer.write(f"POST {PAIR_PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        try:
            while not writer.transport.is_closing():
                writer.write(b"100000\r\n" + bytes(MIB) + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0)  # a lost connection is told by the loop alone
        except (ConnectionError, ssl.SSLError):
            pass
        answer = await closed_by_peer(reader)
        assert not answer or answer.split()[1] == b"413"


@pytest.mark.parametrize("body", [b"[" * 60_000, b'{"a":' * 10_000, b"\xff" * 1000, b"null", b'{"certificate":1}'])
async def test_odd_json(target, body):
    async with AsyncExitStack() as stack:
        reader, writer = await target.connect(stack, with_tls=True)
        head = f"POST {PAIR_PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        assert (await closed_by_peer(reader)).split()[1] == b"400"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/hello HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000,
        b"GET /" + b"y" * 100_000,
        b"GET /v1/hello HTTP/1.1\r\n" + b"X: y\r\n" * 50_000,
    ],
    ids=["header", "path", "headers"],
)
async def test_heads_that_are_too_large(target, head):
    async with AsyncExitStack() as stack:
        reader, writer = await target.connect(stack, with_tls=True)
        try:
            writer.write(head)
            await writer.drain()
        except (ConnectionError, ssl.SSLError):
            return
        answer = await closed_by_peer(reader)
        assert not answer or answer.split()[1].startswith(b"4")


async def test_slow_clients_are_sent_away(target):
    """One byte at a time, for as long as they are let: the head, and a body."""
    async with AsyncExitStack() as stack:
        callers = []
        for beginning in (
            b"GET /v1/he",
            f"POST {PAIR_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n".encode(),
        ):
            reader, writer = await target.connect(stack, with_tls=True)
            writer.write(beginning)
            callers.append((reader, writer))

        async def drip(writer: asyncio.StreamWriter) -> None:
            while not writer.transport.is_closing():
                writer.write(b"x")
                await asyncio.sleep(0.2)

        dripping = [asyncio.create_task(drip(writer)) for _, writer in callers]
        await target.serve_peer()
        answers = await asyncio.gather(*(closed_by_peer(reader) for reader, _ in callers))
        for task in dripping:
            task.cancel()
        await asyncio.gather(*dripping, return_exceptions=True)
        assert answers[0] == b""
        assert answers[1] == b"" or answers[1].split()[1] == b"408"
