"""The two lists of nodes that a front end sees, and what it is told of them: all of a list whenever it has changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from runtime.cluster.shelf import Patience, Shelf

if TYPE_CHECKING:
    from collections.abc import Callable

    from discovery.address import HostPort
    from runtime.cluster.nodes import KnownNode, UnpairedNode


class NodeLists:
    """Nodes are listed as long as they answer; each list is sorted by name."""

    def __init__(
        self,
        patience: Patience,
        acknowledged: Callable[[str, int], bool],
        on_usable: Callable[[tuple[KnownNode, ...]], None],
        on_unpaired: Callable[[tuple[UnpairedNode, ...]], None] | None,
    ) -> None:
        self._on_usable = on_usable
        self._on_unpaired = on_unpaired
        self.usable: Shelf[KnownNode] = Shelf(patience, acknowledged, self._report_soon)
        self.unpaired: Shelf[UnpairedNode] = Shelf(patience, acknowledged, self._report_soon)
        self._reported: tuple[tuple[KnownNode, ...], tuple[UnpairedNode, ...]] = ((), ())
        self._report_due: asyncio.Handle | None = None

    def __contains__(self, node_id: str) -> bool:
        return node_id in self.usable or node_id in self.unpaired

    def drop(self, node_id: str, place: HostPort | None = None) -> None:
        """It is in neither list any more; with a ``place``, only if it was last heard there."""
        self.usable.drop(node_id, place)
        self.unpaired.drop(node_id, place)

    def close(self) -> None:
        """Nobody is told anything any more."""
        self.usable.clear()
        self.unpaired.clear()
        if self._report_due is not None:
            self._report_due.cancel()

    def _report_soon(self) -> None:
        if self._report_due is None:
            self._report_due = asyncio.get_running_loop().call_soon(self._report)

    def _report(self) -> None:
        self._report_due = None
        before = self._reported
        usable = sorted(self.usable.nodes, key=lambda node: (node.resources.name, node.resources.node_id))
        unpaired = sorted(self.unpaired.nodes, key=lambda node: (node.name, node.node_id))
        self._reported = (tuple(usable), tuple(unpaired))
        if self._reported[0] != before[0]:
            self._on_usable(self._reported[0])
        if self._reported[1] != before[1] and self._on_unpaired is not None:
            self._on_unpaired(self._reported[1])
