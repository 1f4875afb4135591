"""Chip, cores, model and version of a Mac: ``sysctl`` and ``sw_vers``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from resources.mac.reading import sysctl_values, whole_number
from resources.parse import tidy

SYSCTL_NAMES = (
    "machdep.cpu.brand_string",
    "hw.memsize",
    "hw.model",
    "hw.nperflevels",
    *(f"hw.perflevel{level}.{what}" for level in range(3) for what in ("name", "physicalcpu")),
    "iogpu.wired_limit_mb",
)
"""What :func:`system_from_sysctl` understands. ``sysctl`` says nothing of names that a Mac does not have."""

_MAX_LEVELS = 8


@dataclass(frozen=True, slots=True)
class CoreKind:
    """Cores of one kind. The name is Apple's: ``Performance``, ``Efficiency``, on an M5 Max ``Super``."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class MacSystem:
    """What does not change while a Mac is on, but for the wired limit."""

    chip: str | None = None
    model: str | None = None
    """``Mac16,11``."""
    memory_bytes: int | None = None
    cores: tuple[CoreKind, ...] = ()
    """The fastest kind first; empty if it is not known."""
    wired_limit_bytes: int | None = None
    """What someone has set as the GPU's limit; None for the default, which only Metal knows."""


def system_from_sysctl(output: str) -> MacSystem:
    """``sysctl`` with :data:`SYSCTL_NAMES`: lines of ``name: value``."""
    values = sysctl_values(output)
    wired_limit_mib = whole_number(values.get("iogpu.wired_limit_mb", ""))
    return MacSystem(
        chip=tidy(values.get("machdep.cpu.brand_string", "")),
        model=tidy(values.get("hw.model", "")),
        memory_bytes=whole_number(values.get("hw.memsize", "")) or None,
        cores=_cores(values),
        wired_limit_bytes=wired_limit_mib << 20 if wired_limit_mib else None,
    )


def _cores(values: dict[str, str]) -> tuple[CoreKind, ...]:
    levels = min(whole_number(values.get("hw.nperflevels", "")) or 0, _MAX_LEVELS)
    kinds = []
    for level in range(levels):
        count = whole_number(values.get(f"hw.perflevel{level}.physicalcpu", ""))
        if count:
            kinds.append(CoreKind(tidy(values.get(f"hw.perflevel{level}.name", "")) or f"Level {level}", count))
    return tuple(kinds)


def macos_version(output: str) -> tuple[int, ...] | None:
    """``sw_vers -productVersion`` (``26.6.2``), or ``ProductVersion:`` among the lines of a bare ``sw_vers``."""
    found = re.search(r"^(?:ProductVersion:\s*)?([0-9]{1,4}(?:\.[0-9]{1,4}){0,3})\s*$", output, re.MULTILINE)
    return tuple(int(part) for part in found[1].split(".")) if found is not None else None
