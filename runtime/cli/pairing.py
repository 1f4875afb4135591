"""``pomona pair``, ``unpair`` and ``agent code``: whom this machine trusts."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from discovery.address import AddressBook, BadAddress, HostPort, parse_address
from runtime.agent.folder import data_folder, open_home
from runtime.agent.pairing import pair, show_code, unpair
from runtime.cli.nodes import look_around
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from discovery.home import Home
    from discovery.trust import Trusted
    from runtime.cluster.nodes import UnpairedNode

_SHORTEST_ID = 6


def run_pair(node: str, code: str | None, seconds: float, *, only_here: bool) -> int:
    """Pair with a node by its name, the beginning of its id, or its address; asks for the code if it is not given."""
    home = open_home(data_folder())
    paired = asyncio.run(_pair(home, node, code, seconds, only_here=only_here))
    sys.stdout.write(f"Paired with {paired.name}. Each of you can use the other until one removes it.\n")
    return 0


def run_unpair(node: str) -> int:
    """Trust a node no more, or look no more at an address that was typed."""
    home = open_home(data_folder())
    if _forget_address(home, node):
        sys.stdout.write(f"{node} is not looked at any more.\n")
        return 0
    found = [one for one in home.trust.paired if _is_meant(node, one.name, one.node_id)]
    if len(found) != 1:
        names = ", ".join(one.name for one in home.trust.paired) or "nobody"
        problem = "Several nodes are called" if found else "No paired node is called"
        raise PomonaError(f"{problem} '{node}'; this machine is paired with: {names}.")
    heard = asyncio.run(unpair(home, found[0]))
    told = "It knows." if heard else "It could not be reached, and is refused all the same."
    sys.stdout.write(f"Removed {found[0].name}. {told}\n")
    return 0


def run_code() -> int:
    """Show a code on this machine for someone who pairs with it."""
    shown = asyncio.run(show_code(open_home(data_folder())))
    sys.stdout.write(f"{shown.code}\n")
    sys.stderr.write(f"Type it on the other machine within {shown.seconds:.0f} s.\n")
    return 0


async def _pair(home: Home, node: str, code: str | None, seconds: float, *, only_here: bool) -> Trusted:
    place, node_id = await _find(home, node, seconds, only_here=only_here)
    if code is None:
        sys.stderr.write(f"Have {node} show its code: its window has a button, its terminal `pomona agent code`.\n")
        code = (await asyncio.to_thread(input, "Code: ")).strip().replace(" ", "")
    return await pair(home, place, code, node_id)


async def _find(home: Home, node: str, seconds: float, *, only_here: bool) -> tuple[HostPort, str | None]:
    """Where a node is, and its id if it was found by its name."""
    found: list[UnpairedNode] = []

    def enough(nodes: tuple[UnpairedNode, ...]) -> bool:
        found[:] = [one for one in nodes if _is_meant(node, one.name, one.node_id)]
        return bool(found)

    await look_around(home, seconds, only_here=only_here, enough=enough)
    if len(found) == 1:
        return HostPort(found[0].host, found[0].port), found[0].node_id
    if found:
        ids = ", ".join(one.node_id[:12] for one in found)
        raise PomonaError(f"Several nodes are called '{node}'; name one by the beginning of its id: {ids}.")
    try:
        place = parse_address(node)
    except BadAddress as error:
        raise PomonaError(f"No node called '{node}' is in sight, and it is no address ({error}).") from None
    AddressBook(home.folder).add(place)
    return place, None


def _forget_address(home: Home, text: str) -> bool:
    """Whether ``text`` was an address that is remembered; then it is not any more."""
    try:
        place = parse_address(text)
    except BadAddress:
        return False
    book = AddressBook(home.folder)
    known = place in book.all()
    if known:
        book.remove(place)
    return known


def _is_meant(text: str, name: str, node_id: str) -> bool:
    return text.casefold() == name.casefold() or (len(text) >= _SHORTEST_ID and node_id.startswith(text.lower()))
