"""The interfaces of this machine that lead to other machines, and their addresses now.

What a Mac keeps for itself is passed over: its own radio links (``awdl``, ``llw``, ``ap1``), the bus to its own chips
(``anpi``), tunnels, and the networks of virtual machines.
"""

from __future__ import annotations

import fcntl
import ipaddress
import re
import socket
import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ifaddr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOOPBACK = "127.0.0.1"

_ELSEWHERE = re.compile(
    r"(lo|awdl|llw|utun|anpi|ap|vmenet|bridge1)[0-9]+|lo|(docker|veth|virbr|br-|tailscale|tun|wg).*"
)
_READ_FLAGS = 0xC0206911 if sys.platform == "darwin" else 0x8913
_UP, _LOOPBACK, _POINT_TO_POINT, _RUNNING = 0x1, 0x8, 0x10, 0x40
_REQUEST = struct.Struct("16sH14x")
"""``struct ifreq`` as far as the flags."""


@dataclass(frozen=True, slots=True)
class LanInterface:
    """One interface with its addresses, IPv4 before IPv6 link-local ones; those without their scope."""

    name: str
    index: int
    addresses: tuple[str, ...]

    @property
    def multicast(self) -> tuple[str | int, ...]:
        """How zeroconf is told to use it: an IPv4 address, and the index for IPv6."""
        ipv4 = [address for address in self.addresses if ":" not in address][:1]
        return (*ipv4, *([self.index] if any(":" in address for address in self.addresses) else []))


def lan_interfaces() -> tuple[LanInterface, ...]:
    """Every interface that has a network behind it, by name: up, connected, with an IPv4 or IPv6 link-local address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        found = [
            LanInterface(adapter.name, adapter.index, addresses)
            for adapter in ifaddr.get_adapters()
            if adapter.index is not None and leads_to_others(adapter.name, _flags(asking, adapter.name))
            if (addresses := tuple(usable(_plain(ip.ip) for ip in adapter.ips)))
        ]
    return tuple(sorted(found, key=lambda interface: interface.name))


def loopback_interfaces() -> tuple[LanInterface, ...]:
    """The way from this machine to itself, for virtual nodes."""
    return (LanInterface("lo", 1, (LOOPBACK,)),)


def all_interfaces() -> tuple[LanInterface, ...]:
    """Every way to another machine, and the one to this machine itself."""
    return lan_interfaces() + loopback_interfaces()


def lan_addresses() -> list[str]:
    """The first IPv4 address of each interface that leads to other machines."""
    first = [[address for address in each.addresses if ":" not in address][:1] for each in lan_interfaces()]
    return [address for addresses in first for address in addresses]


def leads_to_others(name: str, flags: int) -> bool:
    """Whether an interface of this name, with these flags of the kernel's, may have other machines behind it."""
    connected = flags & (_UP | _RUNNING) == _UP | _RUNNING
    return connected and not flags & (_LOOPBACK | _POINT_TO_POINT) and _ELSEWHERE.fullmatch(name) is None


def usable(addresses: Iterable[str]) -> Iterator[str]:
    """Those that other machines of the same network reach, IPv4 first.

    IPv6 addresses with a prefix are left out: they come and go, and who has one has a link-local one too.
    """
    parsed = [ipaddress.ip_address(address) for address in addresses]
    yield from (str(address) for address in parsed if address.version == 4 and not address.is_loopback)
    yield from (str(address) for address in parsed if address.version == 6 and address.is_link_local)


def _plain(address: str | tuple[str, int, int]) -> str:
    return address if isinstance(address, str) else address[0].partition("%")[0]


def _flags(asking: socket.socket, name: str) -> int:
    try:
        answer = fcntl.ioctl(asking, _READ_FLAGS, _REQUEST.pack(name.encode()[:15], 0))
    except OSError:  # it was unplugged since it was listed
        return 0
    flags: int = _REQUEST.unpack(answer)[1]
    return flags
