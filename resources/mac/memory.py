"""Memory of a Mac as its kernel counts it: pages, pressure, swap."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from resources.mac.reading import sysctl_values, whole, whole_number

if TYPE_CHECKING:
    from resources.node import MemoryPressure

MEMORY_SYSCTL_NAMES = ("kern.memorystatus_vm_pressure_level", "vm.swapusage")

_PRESSURE: dict[str, MemoryPressure] = {"1": "normal", "2": "warning", "4": "critical"}
_UNITS = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SWAP = re.compile(
    r"total = ([0-9]{1,12})[.,]([0-9]{2})([BKMGT])\s+used = ([0-9]{1,12})[.,]([0-9]{2})([BKMGT])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Pages:
    """``vm_stat`` in bytes. Every page is counted once in internal and file-backed; purgeable ones are internal too."""

    free_bytes: int
    wired_bytes: int
    internal_bytes: int
    """Anonymous pages: what programs have allocated, without what is compressed."""
    purgeable_bytes: int
    """The part of these that their owners let the kernel drop."""
    compressor_bytes: int
    """Physical memory that compressed pages occupy; psutil leaves it out."""

    @property
    def used_bytes(self) -> int:
        """As Activity Monitor: (internal - purgeable) + wired + compressor."""
        return max(self.internal_bytes - self.purgeable_bytes, 0) + self.wired_bytes + self.compressor_bytes


@dataclass(frozen=True, slots=True)
class Swap:
    """What is in swap files, and how large they are now."""

    total_bytes: int
    used_bytes: int


def pages_from_vm_stat(output: str) -> Pages | None:
    """``vm_stat``; None unless the page size and all of the counts are there: half of a sum would be a lie."""
    page_bytes = whole(r"page size of ([0-9]+) bytes", output)
    counts = [
        whole(rf'^"?{name}"?:\s+([0-9]+)\.?\s*$', output)
        for name in (
            "Pages free",
            "Pages wired down",
            "Anonymous pages",
            "Pages purgeable",
            "Pages occupied by compressor",
        )
    ]
    known = [count for count in counts if count is not None]
    if not page_bytes or len(known) < len(counts):
        return None
    return Pages(*(count * page_bytes for count in known))


def pressure_from_sysctl(output: str) -> MemoryPressure | None:
    """``kern.memorystatus_vm_pressure_level``, with or without its name: 1 normal, 2 warning, 4 critical."""
    named = sysctl_values(output).get("kern.memorystatus_vm_pressure_level")
    return _PRESSURE.get(output.strip() if named is None else named)


def free_percent_from_memory_pressure(output: str) -> int | None:
    """``memory_pressure -Q``: ``System-wide memory free percentage: 40%``."""
    percent = whole(r"free percentage:\s*([0-9]{1,3})%", output)
    return percent if percent is not None and percent <= 100 else None


def swap_from_sysctl(output: str) -> Swap | None:
    """``vm.swapusage``: ``total = 23552.00M  used = 22392.56M  free = …``; some languages write a comma."""
    found = _SWAP.search(output)
    if found is None:
        return None
    total = _sized(found[1], found[2], found[3])
    used = _sized(found[4], found[5], found[6])
    return Swap(total, used) if used <= total else None


def _sized(whole_part: str, hundredths: str, unit: str) -> int:
    amount = (whole_number(whole_part) or 0) * 100 + (whole_number(hundredths) or 0)
    return amount * _UNITS[unit.upper()] // 100
