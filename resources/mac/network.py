"""Ports and network services of a Mac: ``networksetup`` and ``ifconfig``.

A port's kind is never guessed from its name: ``en0`` is Wi-Fi on a MacBook and Ethernet on a Mac Studio.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from resources.mac.reading import whole_number
from resources.parse import tidy

_PORT = re.compile(r"^Hardware Port:[ \t]*(\S.*?)[ \t]*\r?\nDevice:[ \t]*(\w{1,15})[ \t]*$", re.MULTILINE)
_THUNDERBOLT = re.compile(r"Thunderbolt ([0-9]{1,2})")
_SERVICE = re.compile(
    r"^\((\*|[0-9]{1,4})\)[ \t]*(\S.*?)[ \t]*\r?\n\(Hardware Port:[ \t]*(.*?),[ \t]*Device:[ \t]*(\w{0,15})\)",
    re.MULTILINE,
)
_SPEED = re.compile(r"([0-9]{1,6}(?:\.[0-9])?)\s*(G)?(?:base)", re.IGNORECASE)
_MEDIA = re.compile(r"^\s*media:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_STATUS = re.compile(r"^\s*status:[ \t]*(active|inactive)\b", re.MULTILINE)
_ADDRESS = re.compile(r"^\s*inet ([0-9]{1,3}(?:\.[0-9]{1,3}){3})\b", re.MULTILINE)
_MEMBER = re.compile(r"^\s*member:[ \t]*(\w{1,15})\b", re.MULTILINE)
_MTU = re.compile(r"\bmtu ([0-9]{1,6})\b")


@dataclass(frozen=True, slots=True)
class Port:
    """A hardware port and the device that belongs to it."""

    name: str
    """``Wi-Fi``, ``Thunderbolt 2``, ``USB 10/100/1000 LAN``; other languages translate some."""
    device: str

    @property
    def thunderbolt_port(self) -> int | None:
        """The number of its Thunderbolt receptacle, which names the same port in system_profiler; None for others."""
        found = _THUNDERBOLT.fullmatch(self.name)
        return int(found[1]) if found is not None else None


@dataclass(frozen=True, slots=True)
class Service:
    """A network service in its order of preference."""

    name: str
    """As the person or their language calls it: find a service by its device instead."""
    port: str
    device: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class Interface:
    """What ``ifconfig`` says of one device."""

    active: bool | None = None
    media: str | None = None
    speed_bits_per_second: int | None = None
    """None where the media line says ``autoselect`` alone, as for Wi-Fi and Thunderbolt."""
    mtu_bytes: int | None = None
    addresses: tuple[str, ...] = ()
    """IPv4."""
    members: tuple[str, ...] = ()
    """Devices that a bridge joins."""


def ports_from_networksetup(output: str) -> tuple[Port, ...]:
    """``networksetup -listallhardwareports``."""
    return tuple(Port(tidy(name) or "", device) for name, device in _PORT.findall(output))


def services_from_networksetup(output: str) -> tuple[Service, ...]:
    """``networksetup -listnetworkserviceorder``; ``(*)`` instead of a number marks a disabled service."""
    return tuple(
        Service(tidy(name) or "", tidy(port) or "", device, enabled=mark != "*")
        for mark, name, port, device in _SERVICE.findall(output)
    )


def service_enabled(output: str) -> bool | None:
    """``networksetup -getnetworkserviceenabled NAME``."""
    return {"Enabled": True, "Disabled": False}.get(output.strip())


def interface_from_ifconfig(output: str) -> Interface:
    """``ifconfig DEVICE``."""
    media = _MEDIA.search(output)
    status = _STATUS.search(output)
    mtu = _MTU.search(output)
    return Interface(
        active=status[1] == "active" if status is not None else None,
        media=tidy(media[1]) if media is not None else None,
        speed_bits_per_second=speed_from_media(media[1]) if media is not None else None,
        mtu_bytes=whole_number(mtu[1]) if mtu is not None else None,
        addresses=tuple(_ADDRESS.findall(output)),
        members=tuple(_MEMBER.findall(output)),
    )


def speed_from_media(media: str) -> int | None:
    """Bits per second of ``1000baseT``, ``10Gbase-T``, ``2500Base-T`` and ``2.5GBase-T``."""
    found = _SPEED.search(media)
    if found is None:
        return None
    whole_part, _, tenth = found[1].partition(".")
    tenths = int(whole_part) * 10 + int(tenth or 0)
    return tenths * (10**9 if found[2] else 10**6) // 10 or None


def thunderbolt_bridge(ports: tuple[Port, ...], interfaces: dict[str, Interface]) -> str | None:
    """The bridge that joins Thunderbolt ports, found by its members: its name is the person's."""
    thunderbolt = {port.device for port in ports if port.thunderbolt_port is not None}
    for device, interface in sorted(interfaces.items()):
        if thunderbolt.intersection(interface.members):
            return device
    return None
