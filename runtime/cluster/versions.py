"""Whether the nodes of a plan may share a model: different versions give different answers, or none. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resources.parse import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from resources.node import NodeResources

_MUST_AGREE = {"pomona": "Pomona", "mlx": "mlx", "mlx_lm": "mlx-lm"}
_MAY_DIFFER = {"system": "", "python": "Python "}


def version_refusal(nodes: Iterable[NodeResources]) -> str | None:
    """Why these nodes cannot run a model together, naming both versions; None if they can, as far as they say."""
    present = tuple(nodes)
    for part, name in _MUST_AGREE.items():
        if differing := _two_that_differ(present, part):
            one, other = differing
            return (
                f"{one.name} has {name} {_version(one, part)} and {other.name} has {_version(other, part)}: their "
                "parts of a model would not fit together. Install the same Pomona on both."
            )
    return None


def version_warnings(nodes: Iterable[NodeResources]) -> tuple[str, ...]:
    """What differs between these nodes and seldom matters, one sentence each; and what a node does not say."""
    present = tuple(nodes)
    warnings = []
    for part, name in _MAY_DIFFER.items():
        if differing := _two_that_differ(present, part):
            one, other = differing
            warnings.append(
                f"{one.name} runs {name}{_version(one, part)} and {other.name} {name}{_version(other, part)}; "
                "if answers go wrong, make them the same."
            )
    for part, name in _MUST_AGREE.items():
        silent = [node.name for node in present if _version(node, part) == UNKNOWN]
        if silent:
            warnings.append(f"{silent[0]} does not say which {name} it has.")
    return tuple(warnings)


def _two_that_differ(nodes: Sequence[NodeResources], part: str) -> tuple[NodeResources, NodeResources] | None:
    """The first node that says its version, and the first that says another."""
    known = [node for node in nodes if _version(node, part) != UNKNOWN]
    other = next((node for node in known if _version(node, part) != _version(known[0], part)), None)
    return None if other is None else (known[0], other)


def _version(node: NodeResources, part: str) -> str:
    version: str = getattr(node.versions, part)
    return version
