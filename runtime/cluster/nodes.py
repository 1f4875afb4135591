"""The nodes that a front end can use, and those that it could pair with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from resources.node import NodeResources  # msgspec resolves the annotation when it decodes
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence


class KnownNode(msgspec.Struct, frozen=True):
    """An agent that has proved to be a trusted node: where it listens and what it has."""

    host: str
    port: int
    resources: NodeResources
    certificate: str = ""
    """The one that its id is the fingerprint of, as PEM."""


class UnpairedNode(msgspec.Struct, frozen=True):
    """An agent that is there and not trusted, or does not trust us. Its name is its own claim."""

    node_id: str
    name: str
    host: str
    port: int
    certificate: str
    shows_code: bool = False
    """Whether it waits for its code to be typed."""


def node_called(nodes: Sequence[KnownNode], word: str) -> KnownNode:
    """The node with this name, or whose id begins so. Raises :class:`PomonaError` if it is not one."""
    found = [
        node for node in nodes if node.resources.name.lower() == word.lower() or node.resources.node_id.startswith(word)
    ]
    if len(found) != 1:
        problem = "is the name of several nodes; give the start of its id" if found else "is no node that answers"
        raise PomonaError(f"{word} {problem}; `pomona nodes --json` shows them.")
    return found[0]
