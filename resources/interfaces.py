"""Network interfaces of this machine that lead to other machines."""

from __future__ import annotations

import ipaddress
import socket

import psutil

_ELSEWHERE = ("awdl", "llw", "utun", "anpi", "ap1", "vmenet", "docker", "veth", "br-", "virbr", "lo")
"""Apple's own radio links, tunnels, and networks of virtual machines and containers."""


def lan_addresses() -> list[str]:
    """The first IPv4 address of each interface that is up, by the interfaces' names."""
    found = []
    up = {name for name, status in psutil.net_if_stats().items() if status.isup}
    for name, addresses in sorted(psutil.net_if_addrs().items()):
        if name in up and not name.startswith(_ELSEWHERE):
            ipv4 = [entry.address for entry in addresses if entry.family == socket.AF_INET]
            found += [address for address in ipv4 if not ipaddress.ip_address(address).is_loopback][:1]
    return found
