"""Where the nodes of a job meet: addresses that work between all of them, and each one's word for the others."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING

import msgspec

from discovery.address import HostPort
from runtime.agent.calls import NoAnswer, Refused, call, new_session
from runtime.agent.trust_messages import PEERS_PATH, Peer, Peers
from runtime.errors import NodeLost, PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode

_INTRODUCE_SECONDS = 5.0

_ANY_PORT = 9


def reachable(nodes: Sequence[KnownNode]) -> tuple[KnownNode, ...]:
    """The same nodes at addresses where the others reach them too.

    This machine's own agent answers on the loopback. When the job has a node elsewhere, this machine's address on the
    way there takes its place. Asks the kernel alone and sends nothing.
    """
    elsewhere = [node for node in nodes if not _is_loopback(node.host)]
    if not elsewhere:
        return tuple(nodes)
    own_address = _address_towards(elsewhere[0].host)
    return tuple(msgspec.structs.replace(node, host=own_address) if _is_loopback(node.host) else node for node in nodes)


async def introduce(home: Home, nodes: Sequence[KnownNode]) -> None:
    """Have each node trust the others as peers, instead of those that this machine introduced before.

    Raises :class:`NodeLost` if one of them does not answer, :class:`PomonaError` if it trusts this machine no more.
    """
    async with new_session(_INTRODUCE_SECONDS) as session:

        async def tell(node: KnownNode) -> None:
            others = Peers(tuple(Peer(one.certificate, one.resources.name) for one in nodes if one is not node))
            context = home.context_for(node.certificate)
            try:
                await call(
                    session, "PUT", HostPort(node.host, node.port), PEERS_PATH, context, msgspec.json.encode(others)
                )
            except Refused as error:
                raise PomonaError(
                    f"{node.resources.name} does not trust this machine any more; pair with it again."
                ) from error
            except NoAnswer as error:
                reason = f"{node.resources.name} does not answer; check that Pomona runs there."
                raise NodeLost(reason, node.resources.node_id) from error

        await asyncio.gather(*map(tell, nodes))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:  # a name
        return host == "localhost"


def _address_towards(host: str) -> str:
    family, kind, _, _, address = socket.getaddrinfo(host, _ANY_PORT, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as way:
        way.connect(address)  # UDP: chooses the way and no more
        name = way.getsockname()
    scoped = len(name) == 4 and name[3] and "%" not in name[0]
    return f"{name[0]}%{name[3]}" if scoped else str(name[0])
