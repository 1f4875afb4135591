"""Pairing between real servers: the right code, wrong ones, men in the middle, replays, and two at once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING

import msgspec
import pytest
from aiohttp import web

from discovery import tls
from discovery.address import HostPort
from discovery.home import temporary_home
from discovery.pairing import TRIES, Guest
from discovery.trust import Role
from runtime.agent.calls import Refused, call, new_session
from runtime.agent.local import noted
from runtime.agent.pairing import hide_code, pair, show_code, unpair
from runtime.agent.trust_messages import (
    HELLO_PATH,
    PAIR_PATH,
    PROVE_PATH,
    PairAnswer,
    PairProof,
    PairStart,
    decode,
)
from runtime.errors import PomonaError
from tests.runtime.agent.serving import LOOPBACK, Served, serving

if TYPE_CHECKING:
    from discovery.home import Home


@pytest.fixture
async def agent():
    async with serving() as served:
        with noted(served.home.folder, served.place.port):
            yield served


@pytest.fixture
def guest():
    with temporary_home() as home:
        yield home


@pytest.fixture
def other():
    with temporary_home() as home:
        yield home


def wrong(code: str) -> str:
    return f"{(int(code) + 1) % 10**6:06d}"


def roles(agent: Served, guest: Home) -> tuple[Role, Role]:
    """What each may do at the other."""
    return agent.home.role_of(guest.identity.node_id), guest.role_of(agent.node_id)


STRANGERS = (Role.STRANGER, Role.STRANGER)
PAIRED = (Role.CONTROLLER, Role.CONTROLLER)


async def test_the_right_code_pairs_both_ways(agent, guest):
    shown = await show_code(agent.home)
    assert 100 < shown.seconds <= 120
    node = await pair(guest, agent.place, shown.code, agent.node_id)
    assert (node.name, node.addresses) == ("Studio", (agent.place,))
    assert roles(agent, guest) == PAIRED
    assert agent.home.trust.get(guest.identity.node_id).name == guest.identity.name


async def test_a_guest_with_an_agent_is_found_again_at_its_address(agent, guest):
    with noted(guest.folder, 4711):
        await pair(guest, agent.place, (await show_code(agent.home)).code)
    assert agent.home.trust.get(guest.identity.node_id).addresses == (HostPort(LOOPBACK, 4711),)


async def test_a_code_is_good_for_one_pairing(agent, guest, other):
    code = (await show_code(agent.home)).code
    await pair(guest, agent.place, code)
    with pytest.raises(PomonaError, match="shows no code"):
        await pair(other, agent.place, code)
    assert roles(agent, other) == STRANGERS


async def test_without_a_code_nobody_pairs(agent, guest):
    with pytest.raises(PomonaError, match="shows no code"):
        await pair(guest, agent.place, "123456")
    await show_code(agent.home)
    await hide_code(agent.home)
    with pytest.raises(PomonaError, match="shows no code"):
        await pair(guest, agent.place, "123456")


async def test_three_wrong_codes_burn_it_and_lock(agent, guest):
    code = (await show_code(agent.home)).code
    for _ in range(TRIES):
        with pytest.raises(PomonaError, match="code is wrong"):
            await pair(guest, agent.place, wrong(code))
    with pytest.raises(PomonaError, match="shows no code"):
        await pair(guest, agent.place, code)
    with pytest.raises(PomonaError, match=r"Too many wrong codes.* in (60|5.) s"):
        await show_code(agent.home)
    assert roles(agent, guest) == STRANGERS


async def test_a_wrong_code_can_be_corrected_at_once(agent, guest):
    code = (await show_code(agent.home)).code
    with pytest.raises(PomonaError, match="code is wrong"):
        await pair(guest, agent.place, wrong(code))
    await pair(guest, agent.place, code)
    assert roles(agent, guest) == PAIRED


async def test_a_try_counts_when_it_begins(agent, guest):
    """A guesser learns from the host's proof whether it was right; hanging up then must not be free."""
    code = (await show_code(agent.home)).code
    async with new_session(10) as session:
        for attempt in range(TRIES):
            agent.server._trust._desk.end_try()  # as if ten seconds had passed
            first = Guest(wrong(code), guest.identity.node_id, agent.node_id)
            await start(session, agent, guest, first)
            assert (agent.server._trust._desk.code is None) == (attempt == TRIES - 1)
    with pytest.raises(PomonaError, match="shows no code"):
        await pair(guest, agent.place, code)


async def test_a_node_that_is_not_the_chosen_one_gets_no_try(agent, guest):
    await show_code(agent.home)
    with pytest.raises(PomonaError, match="Another node answers"):
        await pair(guest, agent.place, "123456", "f" * 64)


async def test_nobody_there_is_said(guest):
    async with serving() as gone:
        place = gone.place
    with pytest.raises(PomonaError, match="No Pomona answers"):
        await pair(guest, place, "123456")


async def test_no_pairing_with_oneself_and_no_odd_codes(agent):
    with pytest.raises(PomonaError, match="this machine itself"):
        await pair(agent.home, agent.place, "123456")
    for code in ("", "12345", "1234567", "12345a", "１２３４５６"):
        with pytest.raises(PomonaError, match="six digits"):
            await pair(agent.home, agent.place, code)


# A man in the middle --------------------------------------------------------------------------------------------------


class Relay:
    """Stands between: shows certificates of his own to both, and passes every word on, changed as it must be."""

    def __init__(self, home: Home, victim: Served) -> None:
        self._home, self._victim = home, victim
        self.words: list[str] = []

    async def start(self, stack: AsyncExitStack) -> HostPort:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        runner = web.AppRunner(app)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        own = self._home.identity
        context = tls.server_context(own.certificate_path, own.key_path, [])
        await web.TCPSite(runner, LOOPBACK, 0, ssl_context=context).start()
        return HostPort(LOOPBACK, runner.addresses[0][1])

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        self.words.append(request.path)
        body = await request.read()
        if request.path == PAIR_PATH:  # the guest's certificate would not be ours: name our own
            start = msgspec.structs.replace(decode(body, PairStart), certificate=self._home.identity.certificate_pem)
            body = msgspec.json.encode(start)
        async with new_session(10) as session:
            try:
                answer = await call(
                    session, request.method, self._victim.place, request.path,
                    tls.anonymous_context(self._victim.pem), body,
                )  # fmt: skip
            except Refused as error:
                return web.Response(status=403, text=error.reason)
        if request.path == HELLO_PATH:
            answer = answer.replace(self._victim.node_id.encode(), self._home.identity.node_id.encode())
        return web.Response(body=answer)


async def test_a_man_in_the_middle_fails_with_the_right_code(agent, guest, other):
    async with AsyncExitStack() as stack:
        relay = Relay(other, agent)
        place = await relay.start(stack)
        code = (await show_code(agent.home)).code
        with pytest.raises(PomonaError, match="code is wrong, or another machine"):
            await pair(guest, place, code)
    assert PAIR_PATH in relay.words
    assert roles(agent, guest) == STRANGERS
    assert agent.home.role_of(other.identity.node_id) is Role.STRANGER
    assert guest.role_of(other.identity.node_id) is Role.STRANGER


# Words that were said before ------------------------------------------------------------------------------------------


async def start(session, agent: Served, guest: Home, first: Guest) -> PairAnswer:
    message = PairStart(guest.identity.certificate_pem, "guest", first.message)
    context = tls.anonymous_context(agent.pem)
    return decode(
        await call(session, "POST", agent.place, PAIR_PATH, context, msgspec.json.encode(message)), PairAnswer
    )


async def prove(session, agent: Served, proof: PairProof) -> bytes:
    context = tls.anonymous_context(agent.pem)
    return await call(session, "POST", agent.place, PROVE_PATH, context, msgspec.json.encode(proof))


async def test_replayed_words_open_nothing(agent, guest):
    async with new_session(10) as session:
        first = Guest((await show_code(agent.home)).code, guest.identity.node_id, agent.node_id)
        answer = await start(session, agent, guest, first)
        proof = PairProof(answer.exchange, first.prove(answer.message, answer.proof))
        await prove(session, agent, proof)
        assert roles(agent, guest)[0] is Role.CONTROLLER
        agent.home.trust.remove(guest.identity.node_id)
        with pytest.raises(Refused, match="No pairing"):
            await prove(session, agent, proof)
        await show_code(agent.home)
        again = await start(session, agent, guest, first)  # the same first word, in a new exchange
        with pytest.raises(Refused, match="code is wrong"):
            await prove(session, agent, PairProof(again.exchange, proof.proof))
    assert agent.home.role_of(guest.identity.node_id) is Role.STRANGER


async def test_two_pairings_at_once_do_not_mix(agent, guest, other):
    code = (await show_code(agent.home)).code
    async with new_session(10) as session:
        one = Guest(code, guest.identity.node_id, agent.node_id)
        two = Guest(code, other.identity.node_id, agent.node_id)
        answer = await start(session, agent, guest, one)
        with pytest.raises(Refused, match="another node"):
            await start(session, agent, other, two)
        with pytest.raises(Refused, match="No pairing"):
            await prove(session, agent, PairProof("0" * 32, bytes(32)))
        await prove(session, agent, PairProof(answer.exchange, one.prove(answer.message, answer.proof)))
    assert roles(agent, guest)[0] is Role.CONTROLLER
    assert roles(agent, other)[0] is Role.STRANGER


async def test_many_guests_with_the_right_code_and_one_gets_in(agent):
    code = (await show_code(agent.home)).code
    with ExitStack() as stack:
        guests = [stack.enter_context(temporary_home()) for _ in range(4)]
        results = await asyncio.gather(*(pair(guest, agent.place, code) for guest in guests), return_exceptions=True)
        paired = [guest for guest, result in zip(guests, results, strict=True) if not isinstance(result, Exception)]
        assert len(paired) == 1
        assert [node.node_id for node in agent.home.trust.paired] == [paired[0].identity.node_id]


@pytest.mark.parametrize(
    "change",
    [
        {"message": b"A" + bytes(32)},
        {"message": b"B" + bytes([1]) * 32},
        {"message": b"A" + b"\xff" * 32},
        {"message": b"A" * 20},
        {"certificate": "no certificate"},
        {"certificate": "x" * 5000},
        {"name": "x" * 300},
        {"port": 70000},
    ],
)
async def test_words_that_no_guest_would_say_are_refused(agent, guest, change):
    await show_code(agent.home)
    good = PairStart(guest.identity.certificate_pem, "guest", Guest("1", guest.identity.node_id, "x").message)
    body = msgspec.json.encode(msgspec.structs.replace(good, **change))
    async with new_session(10) as session:
        with pytest.raises(Refused):
            await call(session, "POST", agent.place, PAIR_PATH, tls.anonymous_context(agent.pem), body)
    assert not agent.home.trust.nodes


# Removing -------------------------------------------------------------------------------------------------------------


async def test_removing_ends_it_on_both_sides(agent, guest):
    node = await pair(guest, agent.place, (await show_code(agent.home)).code)
    assert await unpair(guest, node)
    assert roles(agent, guest) == STRANGERS


async def test_removing_a_node_that_is_away_ends_it_here(agent, guest):
    node = await pair(guest, agent.place, (await show_code(agent.home)).code)
    await agent.server.close()
    assert not await unpair(guest, node)
    assert guest.role_of(agent.node_id) is Role.STRANGER


async def test_a_machine_without_an_agent_cannot_show_a_code(guest):
    with pytest.raises(PomonaError, match="No agent runs"):
        await show_code(guest)
