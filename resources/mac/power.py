"""Heat, sleep and battery of a Mac, as ``pmset`` tells them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from resources.mac.reading import whole
from resources.node import Battery
from resources.parse import tidy

_ASSERTION = re.compile(
    r"^\s*pid ([0-9]{1,9})\((.*?)\):\s*\[[^\]]*\]\s*[0-9:]+\s+(\w+)\s+named:\s*\"(.*?)\"", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Thermal:
    """Whether a Mac says that it is too warm."""

    warning: bool
    speed_limit_percent: int | None = None
    """How fast the processor may run; most Macs with Apple silicon never say."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """A process that keeps a Mac from sleeping, or from something else."""

    pid: int
    process: str
    kind: str
    """``PreventUserIdleSystemSleep`` and others."""
    name: str


@dataclass(frozen=True, slots=True)
class PowerSettings:
    """The settings in use now; None where the Mac does not list one."""

    low_power_mode: bool | None = None
    sleep_minutes: int | None = None
    """Idle minutes until sleep; 0 is never."""
    wake_on_network: bool | None = None
    power_nap: bool | None = None


def thermal_from_pmset(output: str) -> Thermal | None:
    """``pmset -g therm``; None for text that speaks neither of a level nor of the lack of one."""
    speed = whole(r"CPU_Speed_Limit\s*=\s*([0-9]{1,3})\s*$", output)
    level = whole(r"thermal warning level\s*(?:=|:|is|set to)\s*([0-9]{1,3})\b", output.lower())
    if speed is None and level is None:
        silent = "No thermal warning level has been recorded" in output
        return Thermal(warning=False) if silent else None
    return Thermal(warning=bool(level) or (speed is not None and speed < 100), speed_limit_percent=speed)


def assertions_from_pmset(output: str) -> tuple[Assertion, ...]:
    """``pmset -g assertions``, those that processes hold."""
    return tuple(
        Assertion(int(pid), tidy(process) or "", kind, tidy(name) or "")
        for pid, process, kind, name in _ASSERTION.findall(output)
        if re.fullmatch(r"[0-9]+", pid)
    )


def battery_from_pmset(output: str) -> Battery | None:
    """``pmset -g batt``; None for a Mac without a battery."""
    source = re.search(r"Now drawing from '([^'\n]*)'", output)
    percent = whole(r"InternalBattery.*?\s([0-9]{1,3})%", output)
    if source is None or percent is None or percent > 100:
        return None
    return Battery(percent=percent, on_mains=source[1] == "AC Power")


def idle_seconds_from_ioreg(output: str) -> float | None:
    """``ioreg -r -d 1 -c IOHIDSystem``: how long nobody has touched keyboard, mouse or trackpad, in nanoseconds."""
    idle = whole(r'"HIDIdleTime"\s*=\s*([0-9]+)\s*$', output)
    return idle / 1e9 if idle is not None else None


def settings_from_pmset(output: str) -> PowerSettings:
    """``pmset -g``: names and numbers; ``sleep`` may be followed by who prevents it."""
    return PowerSettings(
        low_power_mode=_switch("(?:lowpowermode|powermode)", output),
        sleep_minutes=whole(r"^\s*sleep\s+([0-9]+)\b", output),
        wake_on_network=_switch("womp", output),
        power_nap=_switch("powernap", output),
    )


def _switch(name: str, output: str) -> bool | None:
    value = whole(rf"^\s*{name}\s+([0-9])\s*$", output)
    # powermode, on Macs with three modes: 0 automatic, 1 low, 2 high.
    return value == 1 if value is not None else None
