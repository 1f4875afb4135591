"""Who gets through to which route. The table of routes is walked: a new one cannot be forgotten."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import aiohttp
import pytest

from discovery import tls
from discovery.home import Home, temporary_home
from discovery.trust import Role
from runtime.agent.access import REMOVED_CODE
from runtime.agent.calls import new_session, url_of
from runtime.agent.messages import JOB_PATH, NODE_PATH
from runtime.agent.trust_messages import CODE_PATH, HELLO_PATH, PAIR_PATH, PEERS_PATH, PROVE_PATH, TRUST_PATH
from tests.runtime.agent.serving import Served, serving

if TYPE_CHECKING:
    from runtime.agent.access import Route

OPEN_TO_ALL = {HELLO_PATH, PAIR_PATH, PROVE_PATH}
REFUSED = {401, 403}


@pytest.fixture
async def agent():
    async with serving() as served:
        yield served


@pytest.fixture
def caller():
    with temporary_home() as home:
        yield home


async def status(agent: Served, method: str, path: str, context: ssl.SSLContext) -> int:
    """How a request is answered; 403 also stands for a connection that ends without an answer."""
    async with new_session(10) as session:
        try:
            async with session.request(method, url_of("https", agent.place, path), ssl=context) as response:
                return response.status
        except aiohttp.ClientConnectorCertificateError:
            raise
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ssl.SSLError):
            return 403


def as_caller(agent: Served, caller: Home) -> ssl.SSLContext:
    return caller.context_for(agent.pem)


async def statuses(agent: Served, context: ssl.SSLContext) -> dict[tuple[str, str], int]:
    return {
        (route.method, route.path): await status(agent, route.method, route.path, context)
        for route in agent.server.routes
    }


def refused(answers: dict[tuple[str, str], int]) -> set[str]:
    return {path for (_, path), answer in answers.items() if answer in REFUSED}


def all_paths(agent: Served) -> set[str]:
    return {route.path for route in agent.server.routes}


async def test_every_route_that_is_served_is_in_the_table_with_its_role(agent):
    """What aiohttp would answer is what the table names, and the table names whom it is for."""
    runner = agent.server._runner
    assert runner is not None
    served = {(route.method, route.resource.canonical) for route in runner.app.router.routes()}
    assert served == {(route.method, route.path) for route in agent.server.routes}
    assert {route.path for route in agent.server.routes if route.least is Role.STRANGER} == OPEN_TO_ALL


async def test_without_a_certificate_only_hello_and_pairing_answer(agent):
    answers = await statuses(agent, tls.anonymous_context(agent.pem))
    assert refused(answers) == all_paths(agent) - OPEN_TO_ALL
    assert answers["GET", HELLO_PATH] == 200
    assert await status(agent, "GET", "/v1/nothing", tls.anonymous_context(agent.pem)) == 403
    assert await status(agent, "DELETE", HELLO_PATH, tls.anonymous_context(agent.pem)) == 403


async def test_an_unpaired_certificate_opens_nothing(agent, caller):
    answers = await statuses(agent, as_caller(agent, caller))
    assert refused(answers) == all_paths(agent)


async def test_a_removed_certificate_opens_nothing(agent, caller):
    agent.home.trust.pair(caller.identity.certificate_pem, "caller")
    context = as_caller(agent, caller)
    assert await status(agent, "GET", NODE_PATH, context) == 200
    agent.home.trust.remove(caller.identity.node_id)
    assert refused(await statuses(agent, context)) == all_paths(agent)


async def test_a_removed_node_is_refused_on_the_connection_that_it_has(agent, caller):
    agent.home.trust.pair(caller.identity.certificate_pem, "caller")
    context, url = as_caller(agent, caller), url_of("https", agent.place, NODE_PATH)
    async with new_session(10) as session:
        async with session.get(url, ssl=context) as response:
            assert response.status == 200
            await response.read()
        agent.home.trust.remove(caller.identity.node_id)
        async with session.get(url, ssl=context) as response:
            assert response.status == 403


async def test_the_live_connection_of_a_removed_node_is_closed(agent, caller):
    agent.home.trust.pair(caller.identity.certificate_pem, "caller")
    async with new_session(30) as session:
        url = url_of("https", agent.place, JOB_PATH)
        async with session.ws_connect(url, ssl=as_caller(agent, caller)) as job:
            Home(agent.home.folder).trust.remove(caller.identity.node_id)  # as another process would
            message = await asyncio.wait_for(job.receive(), 20)
            assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, REMOVED_CODE)


@pytest.mark.parametrize(
    ("role", "open_paths"),
    [
        (Role.PEER, OPEN_TO_ALL),
        (Role.CONTROLLER, OPEN_TO_ALL | {NODE_PATH, JOB_PATH, PEERS_PATH, TRUST_PATH}),
        (Role.OWNER, OPEN_TO_ALL | {NODE_PATH, JOB_PATH, PEERS_PATH, TRUST_PATH, CODE_PATH}),
    ],
)
async def test_each_role_opens_what_is_its_own(agent, caller, role, open_paths):
    pem = caller.identity.certificate_pem
    if role is Role.PEER:
        agent.home.trust.introduce("c" * 64, [(pem, "caller")])
    elif role is Role.CONTROLLER:
        agent.home.trust.pair(pem, "caller")
    else:
        caller = agent.home

    def allowed(route: Route) -> bool:
        return int(role) >= int(route.least)

    assert {route.path for route in agent.server.routes if allowed(route)} >= open_paths
    # Leaving comes last: afterwards nothing is open any more.
    routes = sorted(agent.server.routes, key=lambda route: route.path == TRUST_PATH)
    for route in routes:
        answer = await status(agent, route.method, route.path, as_caller(agent, caller))
        assert (answer not in REFUSED) == allowed(route), (route, answer)


async def test_whoever_leaves_is_a_stranger_and_may_come_back_by_an_introduction(agent, caller):
    pem, context = caller.identity.certificate_pem, as_caller(agent, caller)
    agent.home.trust.pair(pem, "caller")
    assert await status(agent, "DELETE", TRUST_PATH, context) == 204
    assert await status(agent, "GET", NODE_PATH, context) == 403
    agent.home.trust.introduce("c" * 64, [(pem, "caller")])
    assert agent.home.role_of(caller.identity.node_id) is Role.PEER


async def test_a_flood_of_strangers_is_slowed_and_a_paired_node_is_not(agent, caller):
    agent.home.trust.pair(caller.identity.certificate_pem, "caller")
    anonymous, url = tls.anonymous_context(agent.pem), url_of("https", agent.place, HELLO_PATH)
    async with new_session(60) as session:

        async def ask() -> int:
            async with session.get(url, ssl=anonymous) as response:
                return response.status

        answers = [answer for _ in range(10) for answer in await asyncio.gather(*(ask() for _ in range(10)))]
    assert set(answers) == {200, 429}
    assert await status(agent, "GET", NODE_PATH, as_caller(agent, caller)) == 200
