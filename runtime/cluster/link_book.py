"""The links between nodes that this machine has measured, and the ones that its person chose: ``links.json``."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

import msgspec

from discovery.files import locked, private_folder, read_small, set_aside, write_private
from runtime.cluster.links import NodePair, pair_ids, plan_links  # msgspec resolves the annotation when it decodes

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from runtime.planning.places import Link

log = logging.getLogger(__name__)

FILE_NAME = "links.json"
MAX_PAIRS = 512
"""Between 32 nodes there are 496."""

_MAX_FILE_BYTES = 4 << 20


class _LinkFile(msgspec.Struct, frozen=True):
    pairs: Annotated[tuple[NodePair, ...], msgspec.Meta(max_length=MAX_PAIRS)] = ()


def planning_links(folder: Path, node_ids: Collection[str]) -> tuple[Link, ...]:
    """The links between these nodes as a plan counts with them; ``folder`` is that of this machine's identity.

    Empty if it cannot be read.
    """
    try:
        pairs = LinkBook(folder).pairs()
    except OSError as error:
        log.warning("the links in %s cannot be read: %s", folder, error)
        return ()
    return plan_links(pair for pair in pairs if set(pair.node_ids) <= set(node_ids))


class LinkBook:
    """What is remembered in ``folder``. Raises :class:`OSError` if it cannot be used."""

    def __init__(self, folder: Path) -> None:
        private_folder(folder)
        self._folder = folder
        self._path = folder / FILE_NAME

    def get(self, one: str, other: str) -> NodePair | None:
        """What is known between two nodes, in whatever order they are named."""
        return next((pair for pair in self.pairs() if pair.node_ids == pair_ids(one, other)), None)

    def keep(self, pair: NodePair) -> NodePair:
        """Remember what was measured; what the person chose before stays. Beyond 512 pairs the oldest goes."""
        with locked(self._folder):
            known = self.get(*pair.node_ids)
            kept = msgspec.structs.replace(pair, wanted=known.wanted if known is not None else None)
            self._write(kept)
        return kept

    def want(self, one: str, other: str, addresses: tuple[str, str] | None) -> None:
        """Remember which link a person chose, by its addresses; None leaves the choice to the speed again.

        Raises :class:`KeyError` if nothing is known between the nodes.
        """
        with locked(self._folder):
            known = self.get(one, other)
            if known is None:
                raise KeyError(pair_ids(one, other))
            self._write(msgspec.structs.replace(known, wanted=addresses))

    def pairs(self) -> tuple[NodePair, ...]:
        """All that is known."""
        try:
            return msgspec.json.decode(read_small(self._path, _MAX_FILE_BYTES), type=_LinkFile).pairs
        except FileNotFoundError:
            return ()
        except (ValueError, RecursionError) as error:
            set_aside(self._path, "damaged", f"it cannot be read ({error})")
            return ()

    def _write(self, pair: NodePair) -> None:
        others = [other for other in self.pairs() if other.node_ids != pair.node_ids]
        write_private(self._path, msgspec.json.encode(_LinkFile((*others, pair)[-MAX_PAIRS:])))
