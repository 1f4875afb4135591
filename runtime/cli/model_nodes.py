"""Nodes for commands about models: those in reach, and those that a person names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.cli.nodes import look_around
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode

_LOOK_SECONDS = 4.0


async def nodes_in_reach(home: Home, *, always: bool = False) -> tuple[KnownNode, ...]:
    """The usable nodes; without a look, which takes seconds, where this machine is paired with none.

    ``always`` looks even then: this machine's own agent counts too.
    """
    if not always and not home.trust.paired:
        return ()
    usable, _unpaired = await look_around(home, _LOOK_SECONDS)
    return usable


def called(name: str, nodes: Sequence[KnownNode]) -> list[KnownNode]:
    """Those that a person may mean by a name or the beginning of an id."""
    return [node for node in nodes if node.resources.name == name or node.resources.node_id.startswith(name)]


def named_nodes(nodes: Sequence[KnownNode], names: Sequence[str]) -> list[KnownNode]:
    """The nodes with these names, in their order. Raises :class:`PomonaError`."""
    found = []
    for name in names:
        its = called(name, nodes)
        if len(its) != 1:
            problem = "is the name of several nodes; give the start of its id" if its else "is not in reach"
            raise PomonaError(f"{name} {problem}; `pomona nodes --json` lists those that are.")
        found += its
    return found
