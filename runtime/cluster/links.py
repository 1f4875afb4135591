"""The links between two nodes as both of them measured them, and which one a job uses.

Pure. Both ends use the same pair of addresses: the controller decides once, and each end is told the other's address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from resources.links import NetworkInterface, interface_with, link_name
from runtime.planning.cost import LinkSpeed, hop_seconds
from runtime.planning.places import UNREACHABLE
from runtime.planning.places import Link as PlanLink

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.agent.link_messages import MeasuredLinks

WEIGHED_BYTES = 32 << 10
"""What a link has to carry quickly when the fastest is chosen: the hidden states of a few tokens."""

ChosenBy = Literal["speed", "person"]


class LinkEnd(msgspec.Struct, frozen=True):
    """One end of a link."""

    node_id: str
    interface: str
    address: str
    """As the other end dials it, with the scope that it has there if it is an IPv6 link-local one."""


class Link(msgspec.Struct, frozen=True):
    """A way between two nodes on which each has proved itself to the other."""

    name: str
    """``Thunderbolt``, ``Ethernet 10G``, ``Wi-Fi``."""
    ends: tuple[LinkEnd, LinkEnd]
    """In the order of the nodes' ids."""
    rtt_seconds: float
    """There and back, with one token's hidden state each way; the slower of both measurements."""
    bytes_per_second: float
    """In the slower direction."""

    @property
    def speed(self) -> LinkSpeed:
        return LinkSpeed(self.rtt_seconds, self.bytes_per_second)

    @property
    def addresses(self) -> tuple[str, str]:
        return self.ends[0].address, self.ends[1].address

    def address_of(self, node_id: str) -> str:
        """Where that end is reached by the other."""
        return next(end.address for end in self.ends if end.node_id == node_id)

    def __str__(self) -> str:
        return f"{self.name}, {self.rtt_seconds * 1000:.1f} ms"


class NodePair(msgspec.Struct, frozen=True):
    """Two nodes, all links between them, and what was found on the way."""

    node_ids: tuple[str, str]
    """In order."""
    interfaces: tuple[tuple[NetworkInterface, ...], tuple[NetworkInterface, ...]]
    """Of each node when they were measured: with others everything is measured again."""
    links: tuple[Link, ...] = ()
    wanted: tuple[str, str] | None = None
    """The addresses of the link that a person chose; it is used while it is there."""
    trouble: str = ""
    """Why there is no link, for a person."""
    measured: bool = True
    """False if that could not be tried."""

    @property
    def chosen(self) -> Link | None:
        """The link that a job uses: the person's if it is there, or the fastest."""
        for link in self.links:
            if link.addresses == self.wanted:
                return link
        return fastest(self.links)

    @property
    def chosen_by(self) -> ChosenBy:
        return "person" if any(link.addresses == self.wanted for link in self.links) else "speed"


def pair_ids(one: str, other: str) -> tuple[str, str]:
    """Two node ids in the order in which a pair has them."""
    return (one, other) if one < other else (other, one)


def link_between(links: Iterable[Link], one: str, other: str) -> Link | None:
    """The link of these two nodes among those that were chosen."""
    return next((link for link in links if {end.node_id for end in link.ends} == {one, other}), None)


def fastest(links: Iterable[Link]) -> Link | None:
    """The one on which a few hidden states arrive first; None without any."""
    return min(links, key=lambda link: hop_seconds(link.speed, WEIGHED_BYTES), default=None)


def plan_links(pairs: Iterable[NodePair]) -> tuple[PlanLink, ...]:
    """What a plan counts with: of each pair the link that a job would use.

    Of a pair that was measured and has none, a way that no plan takes if there is another; a pair that was never
    measured is not among them, and counts as the planner's guess.
    """
    return tuple(
        PlanLink(*pair.node_ids, pair.chosen.speed if pair.chosen is not None else UNREACHABLE)
        for pair in pairs
        if pair.measured
    )


def joined(
    node_ids: tuple[str, str],
    interfaces: tuple[tuple[NetworkInterface, ...], tuple[NetworkInterface, ...]],
    there: MeasuredLinks,
    back: MeasuredLinks,
) -> tuple[Link, ...]:
    """The links that both nodes measured, from what the first and the second one say.

    A way that only one of them can dial is none: the hops of a job go in both directions.
    """
    returns = {(_plain(way.address), _plain(way.own_address)): way for way in back.links}
    links = []
    for way in there.links:
        found = returns.get((_plain(way.own_address), _plain(way.address)))
        if found is None:
            continue
        near = interface_with(interfaces[0], way.own_address)
        far = interface_with(interfaces[1], way.address)
        ends = (
            LinkEnd(node_ids[0], near.name if near else "", found.address),
            LinkEnd(node_ids[1], far.name if far else "", way.address),
        )
        links.append(
            Link(
                link_name(near, far),
                ends,
                max(way.rtt_seconds, found.rtt_seconds),
                min(way.bytes_per_second, found.bytes_per_second),
            )
        )
    return tuple(links)


def why_none(names: tuple[str, str], there: MeasuredLinks, back: MeasuredLinks) -> str:
    """What to tell a person when :func:`joined` finds nothing."""
    for name, other, found in ((names[0], names[1], there), (names[1], names[0], back)):
        if not found.links:
            reasons = "; ".join(f"{dead.address}: {dead.reason}" for dead in found.dead) or "it has no address"
            return f"{name} does not reach {other} ({reasons})."
    return (
        f"{names[0]} and {names[1]} reach each other, but by no address in both directions; "
        "a firewall on one of them may be in the way: allow Pomona to take connections there."
    )


def _plain(address: str) -> str:
    return address.partition("%")[0]
