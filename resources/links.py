"""What joins two nodes: network interfaces, which of their addresses to try, and what a link between them is called.

Pure. An address is a candidate until the node at the other end has proved itself there: it may belong to a network
that only the other node is on.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from resources.node import Count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LinkKind = Literal["Thunderbolt", "Ethernet", "Wi-Fi", "network", "this machine"]
"""``network`` is one that the system says nothing about; ``this machine`` joins agents that share one."""

MAX_INTERFACES = 16
MAX_CANDIDATES = 12
"""Each that does not answer costs a second."""

Address = Annotated[str, msgspec.Meta(max_length=64)]


class NetworkInterface(msgspec.Struct, frozen=True):
    """An interface of a node that leads to other machines."""

    name: Annotated[str, msgspec.Meta(max_length=32)]
    """As its own system calls it: ``en0``."""
    kind: LinkKind
    speed_bits_per_second: Count | None
    """What the medium promises; None where it does not say, as Wi-Fi and Thunderbolt."""
    addresses: Annotated[tuple[Address, ...], msgspec.Meta(max_length=16)]
    """IPv4 before IPv6 link-local ones, without scope."""


LOOPBACK = NetworkInterface("lo", "this machine", None, ("127.0.0.1",))
"""Between agents that listen nowhere else."""


def candidates(own: Sequence[NetworkInterface], theirs: Sequence[NetworkInterface]) -> list[str]:
    """The addresses of another node that may be dialled from here, the likeliest first.

    IPv4 addresses come as they are. IPv6 link-local ones are the same on every network, so each is tried through each
    of our interfaces, after all others.
    """
    ipv4 = [address for interface in theirs for address in interface.addresses if _version(address, interface) == 4]
    link_local = [
        address for interface in theirs for address in interface.addresses if _version(address, interface) == 6
    ]
    through = [
        interface.name for interface in own if any(_version(address, interface) == 6 for address in interface.addresses)
    ]
    ipv6 = [f"{address}%{name}" for name in through for address in link_local]
    return list(dict.fromkeys([*ipv4, *ipv6]))[:MAX_CANDIDATES]


def interface_with(interfaces: Iterable[NetworkInterface], address: str) -> NetworkInterface | None:
    """The interface that has ``address``, with or without its scope."""
    plain = address.partition("%")[0]
    return next((interface for interface in interfaces if plain in interface.addresses), None)


def link_name(near: NetworkInterface | None, far: NetworkInterface | None) -> str:
    """What a person calls the way between two interfaces: ``Thunderbolt``, ``Ethernet 10G``, ``Wi-Fi to Ethernet 1G``.

    The slower end gives the speed.
    """
    ends = [end for end in (near, far) if end is not None] or [NetworkInterface("", "network", None, ())]
    kinds = list(dict.fromkeys(end.kind for end in ends))
    speeds = [end.speed_bits_per_second for end in ends if end.speed_bits_per_second]
    speed = f" {speed_name(min(speeds))}" if speeds else ""
    return " to ".join(kinds) + speed


def speed_name(bits_per_second: int) -> str:
    """``100M``, ``1G``, ``2.5G``."""
    unit, letter = (10**9, "G") if bits_per_second >= 10**9 else (10**6, "M")
    return f"{bits_per_second / unit:.1f}".removesuffix(".0") + letter


def _version(address: str, interface: NetworkInterface) -> int:
    """4, 6 for a link-local address without scope, or 0 for what nobody can dial there."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return 0
    if parsed.is_multicast or parsed.is_unspecified or parsed.is_loopback != (interface.kind == "this machine"):
        return 0
    return parsed.version if parsed.version == 4 or (parsed.is_link_local and "%" not in address) else 0
