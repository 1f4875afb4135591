"""Thunderbolt ports of a Mac and which Macs are on their other ends: ``system_profiler SPThunderboltDataType -json``.

Each bus has its own domain id; a Mac at the other end shows as an item with *its* domain id, a drive as one without.
Behind a hub the items are nested. Format as captured between an M5 Max and an M3 Ultra by the tests of omlx.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from resources.mac.reading import Json, as_json, nested, objects, string, whole_number
from resources.parse import tidy

THUNDERBOLT_5_GIGABITS = 80

_SPEED = re.compile(r"(up to )?([0-9]{1,4}) ?Gb/s", re.IGNORECASE)
_UNIDENTIFIED = re.compile(r"0x0*|0+")


@dataclass(frozen=True, slots=True)
class Peer:
    """A Mac at the other end of a cable."""

    name: str | None
    model: str | None
    """``Mac15,14``."""
    domain_id: str
    """The same text as the domain id of a bus on that Mac."""
    behind_hub: bool = False


@dataclass(frozen=True, slots=True)
class ThunderboltPort:
    """One bus with its receptacle."""

    domain_id: str | None
    receptacle: int | None
    """As in the hardware port ``Thunderbolt 1``."""
    connected: bool | None
    speed_gigabits_per_second: int | None
    """Of the link if something is connected, else the most that the port can do."""
    peers: tuple[Peer, ...] = ()

    @property
    def is_thunderbolt_5(self) -> bool | None:
        """Whether the port runs at 80 Gbit/s or could. None for a slower link: its other end may be what is slow."""
        if self.speed_gigabits_per_second is None:
            return None
        if self.speed_gigabits_per_second >= THUNDERBOLT_5_GIGABITS:
            return True
        return None if self.connected else False


def thunderbolt_ports(output: str) -> tuple[ThunderboltPort, ...]:
    """Every bus that says anything of itself."""
    decoded = as_json(output)
    buses = objects(decoded.get("SPThunderboltDataType")) if isinstance(decoded, dict) else []
    return tuple(_port(bus) for bus in buses)


def _port(bus: dict[str, Json]) -> ThunderboltPort:
    tags = [value for key, value in sorted(bus.items()) if re.fullmatch(r"receptacle_[0-9]+_tag", key)]
    tag = next((tag for tag in tags if isinstance(tag, dict)), {})
    direct = objects(bus.get("_items"))
    speed = _SPEED.search(string(tag.get("current_speed_key")) or "")
    status = string(tag.get("receptacle_status_key"))
    peers = []
    for item in nested(bus, "_items"):
        domain_id = _domain_id(item)
        if domain_id is not None:
            peers.append(
                Peer(
                    name=tidy(string(item.get("_name")) or ""),
                    model=tidy(string(item.get("device_name_key")) or ""),
                    domain_id=domain_id,
                    behind_hub=not any(item is one for one in direct),
                )
            )
    return ThunderboltPort(
        domain_id=_domain_id(bus),
        receptacle=whole_number(string(tag.get("receptacle_id_key")) or ""),
        connected=None if status is None else _connected(status),
        speed_gigabits_per_second=int(speed[2]) if speed is not None else None,
        peers=tuple(peers),
    )


def _connected(status: str) -> bool | None:
    return {"receptacle_connected": True, "receptacle_no_devices_connected": False}.get(status)


def _domain_id(item: dict[str, Json]) -> str | None:
    domain_id = tidy(string(item.get("domain_uuid_key")) or "")
    return None if domain_id is None or _UNIDENTIFIED.fullmatch(domain_id) else domain_id
