"""One question to one agent: its answer is what the agent has, and whatever no agent would say is none."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import msgspec
import pytest

from discovery import tls
from discovery.address import HostPort
from discovery.home import temporary_home
from resources.node import Versions
from runtime.agent.calls import MAX_ANSWER_BYTES, NoAnswer, Refused, new_session
from runtime.cluster.asking import ask_node
from tests.runtime.cluster.agent import GIB, Agent, resources_of

if TYPE_CHECKING:
    from discovery.home import Home
    from resources.node import NodeResources


class Question:
    """Asks one agent, whatever it answers."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.timeout = 10.0
        self._node_id = agent.resources.node_id

    async def __call__(self) -> NodeResources:
        context = self.agent.peer.context_for(self.agent.home.identity.certificate_pem)
        async with new_session(self.timeout) as session:
            return await ask_node(session, HostPort("127.0.0.1", self.agent.port), self._node_id, context)


@pytest.fixture
async def ask():
    async with AsyncExitStack() as stack:
        agent = Agent("Studio", stack.enter_context(temporary_home()), stack.enter_context(temporary_home()))
        stack.push_async_callback(agent.close)
        await agent.start()
        yield Question(agent)


async def test_the_answer_is_what_the_agent_has(ask):
    assert await ask() == ask.agent.resources


async def test_a_budget_that_is_wholly_free_stays_what_it_is(ask):
    ask.agent.resources = msgspec.structs.replace(
        ask.agent.resources, memory_total_bytes=400_000_000, memory_available_bytes=400_000_000, virtual=True
    )
    assert (await ask()).memory_available_bytes == 400_000_000


async def test_an_agent_that_does_not_trust_us_refuses(ask):
    ask.agent.trusts = False
    with pytest.raises(Refused):
        await ask()


async def test_another_certificate_than_the_pinned_one_is_no_answer(ask):
    with temporary_home() as other:
        ask.agent.home = other
        with pytest.raises(NoAnswer, match="CERTIFICATE_VERIFY_FAILED"):
            await ask()


async def test_another_node_at_the_same_place_is_no_answer(ask):
    ask.agent.resources = resources_of("Impostor")
    with pytest.raises(NoAnswer, match="another node"):
        await ask()


async def test_texts_are_made_fit_for_labels(ask):
    odd = resources_of("a\u202eb\n" + "x" * 500, ask.agent.resources.node_id)
    ask.agent.resources = msgspec.structs.replace(odd, chip="\x07", versions=Versions("", "1", "2", "3", "4"))
    answer = await ask()
    assert answer.name.startswith("a b x")
    assert len(answer.name) == 80
    assert answer.chip == "unknown chip"
    assert answer.versions.pomona == "unknown"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xff",
        b"[" * 50_000,
        b'{"node_id": 3}',
        b" " * (MAX_ANSWER_BYTES + 1),
        b"x" * 4_000_000,
    ],
)
async def test_a_body_that_no_agent_would_send_is_no_answer(ask, body):
    ask.agent.body = body
    with pytest.raises(NoAnswer):
        await ask()


@pytest.mark.parametrize(
    "memory",
    [
        {"memory_total_bytes": -1, "memory_available_bytes": -1},
        {"memory_available_bytes": 17 * GIB},
        {"memory_available_bytes": -1},
        {"memory_total_bytes": 2**60},
        {"memory_total_bytes": 0, "memory_available_bytes": 0},
    ],
)
async def test_memory_that_no_machine_has_is_no_answer(ask, memory):
    ask.agent.resources = msgspec.structs.replace(ask.agent.resources, **memory)
    with pytest.raises(NoAnswer, match="memory"):
        await ask()


@pytest.mark.parametrize("status", [301, 500])
async def test_any_other_status_is_no_answer(ask, status):
    ask.agent.status = status
    ask.agent.headers = {"Location": "http://192.0.2.7/v1/node"}
    with pytest.raises(NoAnswer, match=str(status)):
        await ask()
    assert ask.agent.asked == 1


async def test_silence_is_no_answer(ask):
    ask.agent.awake.clear()
    ask.timeout = 0.1
    with pytest.raises(NoAnswer, match="Timeout"):
        await ask()
    ask.agent.awake.set()


async def ask_there(answer, home: Home, *, with_tls: bool = True) -> NodeResources:
    """Ask what serves connections with ``answer``, as if it were the node of ``home``."""
    own = home.identity
    context = tls.server_context(own.certificate_path, own.key_path, []) if with_tls else None
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server, new_session(5) as session:
        place = HostPort("127.0.0.1", server.sockets[0].getsockname()[1])
        return await ask_node(session, place, own.node_id, tls.anonymous_context(own.certificate_pem))


@pytest.fixture
def home():
    with temporary_home() as home:
        yield home


@pytest.mark.parametrize("with_tls", [True, False], ids=["over TLS", "plain"])
@pytest.mark.parametrize("garbage", [b"", b"\x16\x03\x01\x02\x00", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 " + b"x" * 20_000])
async def test_what_does_not_speak_http_is_no_answer(home, garbage, with_tls):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(garbage)
        writer.close()

    with pytest.raises((NoAnswer, Refused)):  # one that hangs up may have refused our certificate
        await ask_there(answer, home, with_tls=with_tls)


async def test_an_answer_that_never_ends_is_no_answer(home):
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
                await writer.drain()
        except ConnectionError:
            writer.close()

    with pytest.raises(NoAnswer, match="more than"):
        await ask_there(endless, home)
