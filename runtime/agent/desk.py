"""Trust as a window wants it: each wish by plain values, on the folder of this machine's identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discovery.address import AddressBook, HostPort
from runtime.agent.folder import open_home
from runtime.agent.pairing import hide_code, pair, show_code, unpair

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.agent.trust_messages import ShownCode
    from runtime.cluster.nodes import UnpairedNode


class TrustDesk:
    """Belongs to one event loop. Raises :class:`runtime.errors.PomonaError` for what a person can put right."""

    def __init__(self, folder: Path) -> None:
        self._home = open_home(folder)

    async def pair(self, node: UnpairedNode, code: str) -> None:
        """Pair with a node by the code that it shows."""
        await pair(self._home, HostPort(node.host, node.port), code, node.node_id)

    async def remove(self, node_id: str) -> None:
        """Trust a node no more."""
        node = self._home.trust.get(node_id)
        if node is not None:
            await unpair(self._home, node)

    async def show_code(self) -> ShownCode:
        """Have this machine's agent show a code."""
        return await show_code(self._home)

    async def hide_code(self) -> None:
        """Have it show none any more."""
        await hide_code(self._home)

    async def add_address(self, place: HostPort) -> None:
        """Look for a node there from now on."""
        AddressBook(self._home.folder).add(place)
