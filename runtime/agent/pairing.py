"""What a person does about trust from this machine, in the window or by a command: pair, remove, show a code."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec

from discovery import tls
from discovery.address import HostPort
from discovery.pairing import PROOF_BYTES, Guest, WrongCode, is_code
from runtime.agent.calls import NoAnswer, Refused, ask_hello, call, first_contact, new_session
from runtime.agent.local import local_port
from runtime.agent.trust_messages import (
    CODE_PATH,
    PAIR_PATH,
    PROVE_PATH,
    TRUST_PATH,
    PairAnswer,
    Paired,
    PairProof,
    PairStart,
    ShownCode,
    decode,
)
from runtime.errors import PomonaError

if TYPE_CHECKING:
    import aiohttp

    from discovery.home import Home
    from discovery.trust import Trusted

_LOOPBACK = "127.0.0.1"
_CONTACT_SECONDS = 5.0
_CALL_SECONDS = 10.0
_NO_AGENT = "No agent runs on this machine; start one: pomona agent."

T = TypeVar("T", bound=msgspec.Struct)


async def pair(home: Home, place: HostPort, code: str, node_id: str | None = None) -> Trusted:
    """Pair with the node at ``place`` by the code that it shows; from then on both trust each other.

    With ``node_id`` it must be that node. Raises :class:`PomonaError` for everything that can go wrong: nobody there,
    no code shown, a wrong code, or someone in between, which looks the same.
    """
    if not is_code(code):
        raise PomonaError("A pairing code is six digits; look at the other machine.")
    own = home.identity
    async with new_session(_CALL_SECONDS) as session:
        try:
            certificate = await first_contact(place, _CONTACT_SECONDS)
            host_id = tls.fingerprint_of_pem(certificate)
            if node_id not in {None, host_id}:
                raise PomonaError(f"Another node answers at {place} than the one that you chose; look again.")
            name = (await ask_hello(session, place, certificate)).name
        except (NoAnswer, Refused) as error:
            raise PomonaError(f"No Pomona answers at {place}; check the address and that it runs there.") from error
        if host_id == own.node_id:
            raise PomonaError("That is this machine itself.")
        guest = await asyncio.to_thread(Guest, code, own.node_id, host_id)
        start = PairStart(own.certificate_pem, own.name, guest.message, local_port(home.folder) or 0)
        host = _Host(session, place, certificate, name)
        answer = await host.say(PAIR_PATH, start, PairAnswer)
        try:
            proof = await asyncio.to_thread(guest.prove, answer.message, answer.proof)
        except WrongCode as error:
            with contextlib.suppress(PomonaError):  # a proof of nothing: the host need not wait for us any longer
                await host.say(PROVE_PATH, PairProof(answer.exchange, bytes(PROOF_BYTES)), Paired)
            raise PomonaError(
                f"The code is wrong, or another machine answers in the name of {name}; look at its code again."
            ) from error
        paired = await host.say(PROVE_PATH, PairProof(answer.exchange, proof), Paired)
    try:
        return home.trust.pair(certificate, paired.name, [place])
    except ValueError as error:
        raise PomonaError(f"{name} cannot be added ({error}); remove another node first.") from error


async def unpair(home: Home, node: Trusted) -> bool:
    """Trust ``node`` no more, and ask it for the same; returns whether it heard that.

    What it may do here has ended when this returns, heard or not.
    """
    context = home.context_for(node.certificate)
    home.trust.remove(node.node_id)
    async with new_session(_CONTACT_SECONDS) as session:
        for place in node.addresses:
            try:
                await call(session, "DELETE", place, TRUST_PATH, context)
            except NoAnswer:
                continue
            except Refused:  # it has done so already
                pass
            return True
    return False


async def show_code(home: Home) -> ShownCode:
    """Have this machine's agent show a code.

    Raises :class:`PomonaError` if no agent runs, and after too many wrong codes.
    """
    body = await _ask_own_agent(home, "POST")
    try:
        return decode(body, ShownCode)
    except ValueError as error:
        raise PomonaError("The agent on this machine is another version of Pomona; start it again.") from error


async def hide_code(home: Home) -> None:
    """Have it show none any more. Raises :class:`PomonaError` if no agent runs."""
    await _ask_own_agent(home, "DELETE")


async def _ask_own_agent(home: Home, method: str) -> bytes:
    port = local_port(home.folder)
    if port is None:
        raise PomonaError(_NO_AGENT)
    try:
        async with new_session(_CALL_SECONDS) as session:
            context = home.context_for(home.identity.certificate_pem)
            return await call(session, method, HostPort(_LOOPBACK, port), CODE_PATH, context)
    except Refused as error:
        raise PomonaError(error.reason or "The agent on this machine refuses; start it again.") from error
    except NoAnswer as error:
        raise PomonaError(_NO_AGENT) from error


@dataclass(frozen=True, slots=True)
class _Host:
    """The machine that shows the code, as far as it is known before pairing."""

    session: aiohttp.ClientSession
    place: HostPort
    certificate: str
    name: str

    async def say(self, path: str, message: msgspec.Struct, kind: type[T]) -> T:
        context = tls.anonymous_context(self.certificate)
        body = msgspec.json.encode(message)
        try:
            return decode(await call(self.session, "POST", self.place, path, context, body), kind)
        except Refused as error:
            raise PomonaError(error.reason or f"{self.name} broke off; try again.") from error
        except (NoAnswer, ValueError) as error:
            raise PomonaError(
                f"{self.name} did not answer as it should; check that both run the same Pomona."
            ) from error
