"""Addresses at which a job's nodes reach each other, and the word that a controller puts in for them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from discovery.home import temporary_home
from discovery.trust import Role
from runtime.cluster.meeting import introduce, reachable
from runtime.cluster.nodes import KnownNode
from runtime.errors import PomonaError
from tests.runtime.agent.serving import LOOPBACK, Served, resources_of, serving

if TYPE_CHECKING:
    from discovery.home import Home


def known(home: Home, host: str, port: int = 4000) -> KnownNode:
    return KnownNode(host, port, resources_of(home, "node"), home.identity.certificate_pem)


def node_of(served: Served) -> KnownNode:
    return known(served.home, served.place.host, served.place.port)


@pytest.fixture
def home():
    with temporary_home() as home:
        yield home


def test_nodes_of_one_machine_meet_on_its_loopback(home):
    nodes = (known(home, LOOPBACK), known(home, "::1"))
    assert reachable(nodes) == nodes


def test_this_machines_node_is_known_to_others_by_the_address_on_the_way_to_them(home):
    """The kernel is asked for the way; on the loopback's other addresses that is the same address."""
    own, other = known(home, LOOPBACK), known(home, "192.0.2.77")
    try:
        first, second = reachable((own, other))
    except OSError:
        pytest.skip("this machine has no way to any other")
    assert second == other
    assert first.host not in {LOOPBACK, "0.0.0.0", ""}


async def test_nodes_trust_each_other_as_peers_when_their_controller_says_so(home):
    async with AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(serving(name)) for name in ("one", "two", "three")]
        for agent in agents:
            agent.home.trust.pair(home.identity.certificate_pem, "controller")
        await introduce(home, [node_of(agent) for agent in agents])
        for agent in agents:
            others = {other.node_id for other in agents if other is not agent}
            assert {one for one in others if agent.home.role_of(one) is Role.PEER} == others
        await introduce(home, [node_of(agent) for agent in agents[:2]])
        assert agents[0].home.role_of(agents[2].node_id) is Role.STRANGER


async def test_a_node_that_removed_us_is_named(home):
    async with serving("one") as agent:
        with pytest.raises(PomonaError, match="node does not trust this machine any more"):
            await introduce(home, [node_of(agent)])


async def test_a_node_that_is_gone_is_named(home):
    async with serving("one") as agent:
        node = node_of(agent)
    with pytest.raises(PomonaError, match="node does not answer"):
        await introduce(home, [node])
