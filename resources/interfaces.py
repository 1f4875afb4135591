"""The network interfaces of this machine with their kind and speed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from discovery.interfaces import lan_interfaces
from resources.commands import Command, run_command
from resources.links import MAX_INTERFACES, LinkKind, NetworkInterface
from resources.mac.network import Interface, interface_from_ifconfig, ports_from_networksetup, thunderbolt_bridge
from resources.survey import PORTS

if TYPE_CHECKING:
    from resources.mac.network import Port
    from resources.survey import Run

_SYS = Path("/sys/class/net")
_WIRELESS_PORTS = {"Wi-Fi", "WLAN", "AirPort"}
"""As macOS calls the port in English, in German, and in its older versions."""
_WIRED_WORDS = ("ethernet", "lan")


async def network_interfaces(run: Run = run_command) -> tuple[NetworkInterface, ...]:
    """What leads to other machines now; on a Mac this runs a short command for each interface."""
    found = lan_interfaces()[:MAX_INTERFACES]
    names = [interface.name for interface in found]
    kinds = (
        await _kinds_on_mac(names, run) if sys.platform == "darwin" else {name: _kind_on_linux(name) for name in names}
    )
    stats = psutil.net_if_stats()
    return tuple(
        NetworkInterface(
            interface.name,
            kinds[interface.name],
            stats[interface.name].speed * 10**6 or None if interface.name in stats else None,
            interface.addresses,
        )
        for interface in found
    )


def kinds_on_mac(names: list[str], ports: tuple[Port, ...], interfaces: dict[str, Interface]) -> dict[str, LinkKind]:
    """The kind of each interface from the hardware ports and ``ifconfig``; names of devices say nothing."""
    by_device = {port.device: port for port in ports}
    bridge = thunderbolt_bridge(ports, interfaces)
    return {
        name: "Thunderbolt" if name == bridge else _kind_of_port(by_device.get(name), interfaces.get(name))
        for name in names
    }


def _kind_of_port(port: Port | None, interface: Interface | None) -> LinkKind:
    if port is not None and port.thunderbolt_port is not None:
        return "Thunderbolt"
    if port is not None and port.name in _WIRELESS_PORTS:
        return "Wi-Fi"
    wired = interface is not None and interface.speed_bits_per_second is not None
    if wired or (port is not None and any(word in port.name.lower() for word in _WIRED_WORDS)):
        return "Ethernet"
    return "network"


async def _kinds_on_mac(names: list[str], run: Run) -> dict[str, LinkKind]:
    ports, *details = await asyncio.gather(run(PORTS), *(run(Command(("ifconfig", name))) for name in names))
    interfaces = {name: interface_from_ifconfig(detail or "") for name, detail in zip(names, details, strict=True)}
    return kinds_on_mac(names, ports_from_networksetup(ports or ""), interfaces)


def _kind_on_linux(name: str) -> LinkKind:
    if (_SYS / name / "wireless").exists() or (_SYS / name / "phy80211").exists():
        return "Wi-Fi"
    return "Ethernet"
