"""Which parts of a model each node wants, and who gives them: peers that have them, else the hub, once. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from runtime.models.parts import stage_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime.agent.models.messages import Held
    from runtime.cluster.nodes import KnownNode
    from runtime.models.parts import Part
    from runtime.planning.values import Plan

UNKNOWN_BYTES_PER_SECOND = 100e6
"""What a link counts as before it was measured."""
_HUB = "the hub"


class Way(NamedTuple):
    """How one node reaches another for model bytes."""

    host: str
    link: str = ""
    """What a person calls it; empty if it was not measured."""
    bytes_per_second: float = 0.0
    """0 if it was not measured."""


@dataclass(slots=True)
class NodeFetch:
    """What one node has, wants and gets."""

    node: KnownNode
    held: Held
    wanted: list[str]
    peers: dict[str, list[str]] = field(default_factory=dict)
    """Parts that it gets from each node, by that node's id."""
    later: dict[str, list[str]] = field(default_factory=dict)
    """The same of parts that the other node has to fetch first."""
    hub: list[str] = field(default_factory=list)
    """Parts that no node has, for which this one asks the hub."""

    @property
    def node_id(self) -> str:
        return self.node.resources.node_id

    @property
    def name(self) -> str:
        return self.node.resources.name

    @property
    def givers(self) -> set[str]:
        """The ids of the nodes that it gets something from."""
        return {*self.peers, *self.later}


def wanted_by(plan: Plan, parts: Mapping[str, Part]) -> dict[str, list[str]]:
    """The parts that each node of a plan needs."""
    wanted: dict[str, list[str]] = {}
    for stage in plan.stages:
        for rank in stage.ranks:
            names = stage_parts(parts, stage.first_layer, stage.last_layer + 1)
            wanted[rank.node_id] = sorted({*wanted.get(rank.node_id, ()), *names})
    return wanted


def nobody_has(held: Mapping[str, Held], wanted: Mapping[str, Sequence[str]]) -> set[str]:
    """The wanted parts that are on none of the nodes."""
    there = {part for has in held.values() for part in has.parts}
    return {part for names in wanted.values() for part in names} - there


def assign(
    nodes: Sequence[KnownNode], held: Mapping[str, Held], wanted: Mapping[str, Sequence[str]]
) -> list[NodeFetch]:
    """Who gets what from whom: each part from all nodes that have it; else one asks the hub, and others ask it.

    The hub's share goes to whoever has the least of it so far.
    """
    fetches = {
        node.resources.node_id: NodeFetch(
            node, held[node.resources.node_id], list(wanted.get(node.resources.node_id, ()))
        )
        for node in nodes
    }
    for part in sorted({part for names in wanted.values() for part in names}):
        holders = [node_id for node_id, fetch in fetches.items() if part in fetch.held.parts]
        seekers = [
            node_id for node_id, fetch in fetches.items() if part in fetch.wanted and part not in fetch.held.all_parts
        ]
        sharing = [node_id for node_id in seekers if not fetches[node_id].held.converts]
        asker = min(sharing, key=lambda node_id: len(fetches[node_id].hub), default="")
        for seeker in seekers:
            fetch = fetches[seeker]
            for holder in holders:
                if holder != seeker:
                    fetch.peers.setdefault(holder, []).append(part)
            if not holders and asker in {"", seeker}:
                fetch.hub.append(part)
            elif not holders:
                fetch.later.setdefault(asker, []).append(part)
    return list(fetches.values())


def sentence(fetch: NodeFetch, parts: Mapping[str, Part], names: Mapping[str, str], ways: Mapping[str, Way]) -> str:
    """One line before anything moves.

    ``mini: has 14 of 18 layers; 3.1 GB from Studio over Thunderbolt (40 s); 0.9 GB from the hub``. ``names`` and
    ``ways`` are those of the other nodes, by their ids. What several nodes have is counted to the one that is reached
    fastest.
    """
    layers = [part for part in fetch.wanted if part.startswith("layer-")]
    has = sum(part in fetch.held.all_parts for part in layers)
    words = [f"{fetch.name}: has {has} of {len(layers)} layers"]
    seen: set[str] = set()
    sources = [*fetch.peers.items(), *fetch.later.items()]
    for source, its in sorted(sources, key=lambda item: -ways[item[0]].bytes_per_second):
        size = sum(parts[part].byte_count for part in its if part not in seen)
        seen.update(its)
        if size:
            words.append(f"{size_words(size)} from {names[source]}{_way_words(ways[source], size)}")
    if fetch.hub:
        words.append(f"{size_words(sum(parts[part].byte_count for part in fetch.hub))} from {_HUB}")
    return "; ".join(words)


def _way_words(way: Way, size: int) -> str:
    return f" over {way.link} ({_seconds_words(size / way.bytes_per_second)})" if way.bytes_per_second else ""


def _seconds_words(seconds: float) -> str:
    if seconds < 1:
        return "less than 1 s"
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def size_words(byte_count: int) -> str:
    """``3.1 GB``, ``20.4 MB``."""
    return f"{byte_count / 1e9:.1f} GB" if byte_count >= 1e8 else f"{byte_count / 1e6:.1f} MB"
