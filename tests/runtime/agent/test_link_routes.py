"""One node measures the way to another, over real TLS on the loopback."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import aiohttp
import msgspec
import pytest
from aiohttp import web

from discovery import tls
from discovery.identity import Identity, temporary_identity
from resources.links import LOOPBACK, NetworkInterface
from runtime.agent.link_messages import (
    BULK_PATH,
    ECHO_PATH,
    INTERFACES_PATH,
    MEASURE_PATH,
    Interfaces,
    MeasuredLinks,
    MeasureLinks,
)
from runtime.agent.link_probe import Peer, measure_links
from runtime.agent.link_routes import LinkRoutes

ADDRESS = "127.0.0.1"
MIBIT = 1e6 / 8


@dataclass
class Node:
    """An agent's link routes behind its certificate."""

    identity: Identity
    port: int = 0
    busy: bool = False
    trusts: dict[str, Peer] = field(default_factory=dict)

    @property
    def node_id(self) -> str:
        return self.identity.node_id

    async def serve(self, opened: AsyncExitStack, *callers: Identity) -> None:
        routes = LinkRoutes(lambda: self.busy, lambda node_id, _port: self.trusts.get(node_id), "Apple M4")
        application = web.Application()
        for route in routes.routes:
            application.router.add_route(route.method, route.path, route.handler)
        runner = web.AppRunner(application, shutdown_timeout=1.0)
        await runner.setup()
        opened.push_async_callback(runner.cleanup)
        trusted = [caller.certificate_pem for caller in callers]
        context = tls.server_context(self.identity.certificate_path, self.identity.key_path, trusted)
        await web.TCPSite(runner, ADDRESS, 0, ssl_context=context).start()
        self.port = runner.addresses[0][1]

    def as_peer_of(self, caller: Identity, node_id: str | None = None) -> Peer:
        context = tls.client_context(caller.certificate_path, caller.key_path, self.identity.certificate_pem)
        return Peer(node_id or self.node_id, self.port, context)


@pytest.fixture
async def opened():
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def nodes(opened):
    """Two that know each other."""
    one, other = (Node(opened.enter_context(temporary_identity())) for _ in range(2))
    for node in (one, other):
        await node.serve(opened, one.identity, other.identity)
    one.trusts[other.node_id] = other.as_peer_of(one.identity)
    other.trusts[one.node_id] = one.as_peer_of(other.identity)
    return one, other


async def ask(node: Node, caller: Node, wanted: MeasureLinks | bytes) -> tuple[int, bytes]:
    body = wanted if isinstance(wanted, bytes) else msgspec.json.encode(wanted)
    peer = node.as_peer_of(caller.identity)
    async with (
        aiohttp.ClientSession() as session,
        session.post(peer.url(ADDRESS, MEASURE_PATH), data=body, ssl=peer.context) as response,
    ):
        return response.status, await response.read()


def to(node: Node, *addresses: str) -> MeasureLinks:
    theirs = NetworkInterface("lo", "this machine", None, addresses or (ADDRESS,))
    return MeasureLinks(node.node_id, node.port, (LOOPBACK,), (theirs,))


async def test_a_way_is_proved_and_measured(nodes):
    one, other = nodes
    status, body = await ask(one, other, to(other))
    assert status == 200
    (way,) = msgspec.json.decode(body, type=MeasuredLinks).links
    assert (way.own_address, way.address) == (ADDRESS, ADDRESS)
    assert 0 < way.rtt_seconds < 5
    assert way.bytes_per_second > MIBIT


async def test_of_two_addresses_on_the_same_way_one_is_measured_and_a_dead_one_is_told(nodes):
    one, other = nodes
    _, body = await ask(one, other, to(other, ADDRESS, "127.0.0.9", ADDRESS))
    found = msgspec.json.decode(body, type=MeasuredLinks)
    assert [way.address for way in found.links] == [ADDRESS]
    assert [dead.address for dead in found.dead] == ["127.0.0.9"]
    assert found.dead[0].reason == "Connection refused"


async def test_another_node_at_that_address_is_no_way(nodes, opened):
    one, other = nodes
    impostor = Node(opened.enter_context(temporary_identity()))
    await impostor.serve(opened, one.identity, other.identity)
    peer = Peer(other.node_id, impostor.port, other.as_peer_of(one.identity).context)
    found = await measure_links(peer, [ADDRESS], lambda own, address: (own, address))
    assert not found.links
    assert found.dead[0].reason == "another node answers"


async def test_a_node_that_is_not_trusted_is_not_dialled(nodes):
    one, other = nodes
    one.trusts.clear()
    status, body = await ask(one, other, to(other))
    assert (status, body) == (404, b"That node is not trusted here.")


@pytest.mark.parametrize("who", ["one that dials", "one that is dialled"])
async def test_nothing_is_measured_while_a_job_runs(nodes, who):
    one, other = nodes
    (one if who == "one that dials" else other).busy = True
    status, body = await ask(one, other, to(other))
    if who == "one that dials":
        assert status == 409
    else:
        found = msgspec.json.decode(body, type=MeasuredLinks)
        assert not found.links
        assert "is running a model" in found.dead[0].reason


async def test_two_that_want_to_measure_at_once_do_not_disturb_each_other(nodes):
    one, other = nodes
    answers = await asyncio.gather(*(ask(one, other, to(other)) for _ in range(3)))
    assert sorted(status for status, _ in answers) == [200, 409, 409]


@pytest.mark.parametrize("body", [b"", b"{}", b"[" * 60_000, b'{"node_id": "x", "port": 1, "interfaces": []}'])
async def test_what_is_no_request_is_refused(nodes, body):
    status, _ = await ask(nodes[0], nodes[1], body)
    assert status == 400


async def test_a_bulk_without_end_is_cut_off(nodes, monkeypatch):
    monkeypatch.setattr("runtime.agent.link_routes._BULK_LIMIT_BYTES", 1 << 20)
    one, other = nodes
    peer = other.as_peer_of(one.identity)

    async def endless():
        while True:
            yield bytes(1 << 16)

    async with aiohttp.ClientSession() as session:
        with pytest.raises((aiohttp.ClientError, AssertionError)):
            async with session.post(peer.url(ADDRESS, BULK_PATH), data=endless(), ssl=peer.context) as response:
                assert response.status == 200


async def test_a_caller_who_says_nothing_holds_the_echo_no_longer_than_a_moment(nodes, monkeypatch):
    monkeypatch.setattr("runtime.agent.link_routes._ECHO_WAIT_SECONDS", 0.1)
    one, other = nodes
    peer = other.as_peer_of(one.identity)
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(peer.url(ADDRESS, ECHO_PATH), ssl=peer.context) as silent:
            message = await asyncio.wait_for(silent.receive(), 10)
            assert message.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}
        status, body = await ask(one, other, to(other))
    assert status == 200
    assert msgspec.json.decode(body, type=MeasuredLinks).links


async def test_interfaces_are_told_as_a_list(nodes):
    one, other = nodes
    peer = other.as_peer_of(one.identity)
    async with (
        aiohttp.ClientSession() as session,
        session.get(peer.url(ADDRESS, INTERFACES_PATH), ssl=peer.context) as response,
    ):
        told = msgspec.json.decode(await response.read(), type=Interfaces)
    assert all(interface.addresses for interface in told)
