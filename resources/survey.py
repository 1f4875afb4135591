"""Which commands a Mac is asked, and what comes of their answers. Every answer may be missing.

Static parts are asked once; the rest by :class:`resources.monitor.Monitor`, as often as it changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from resources import starting
from resources.commands import Command, run_command
from resources.mac import rdma
from resources.mac.gpu import Gpu, MetalDevice, gpu_cores_from_displays, gpu_from_ioreg, metal_device
from resources.mac.macmon import Sensors, sensors_from_macmon
from resources.mac.memory import (
    MEMORY_SYSCTL_NAMES,
    Pages,
    Swap,
    pages_from_vm_stat,
    pressure_from_sysctl,
    swap_from_sysctl,
)
from resources.mac.network import Port, Service, ports_from_networksetup, services_from_networksetup
from resources.mac.power import (
    battery_from_pmset,
    idle_seconds_from_ioreg,
    settings_from_pmset,
    thermal_from_pmset,
)
from resources.mac.system import SYSCTL_NAMES, MacSystem, macos_version, system_from_sysctl
from resources.mac.thunderbolt import ThunderboltPort, thunderbolt_ports
from resources.rdma_verdict import Cable, Thunderbolt, has_thunderbolt_5

if TYPE_CHECKING:
    from resources.node import Battery, MemoryPressure

Run: TypeAlias = Callable[[Command], Awaitable[str | None]]

SYSTEM = Command(("sysctl", *SYSCTL_NAMES), any_status=True)
IOREG = Command(("ioreg", "-r", "-c", "AGXAccelerator", "-l"))
DISPLAYS = Command(("system_profiler", "SPDisplaysDataType", "-json"), limit_seconds=10)
METAL = Command(starting.engine("device_info"), limit_seconds=20)
"""In a process of its own: whoever asks keeps MLX out."""
VERSION = Command(("sw_vers", "-productVersion"))
VM_STAT = Command(("vm_stat",))
MEMORY = Command(("sysctl", *MEMORY_SYSCTL_NAMES), any_status=True)
THERMAL = Command(("pmset", "-g", "therm"))
BATTERY = Command(("pmset", "-g", "batt"))
SETTINGS = Command(("pmset", "-g"))
IDLE = Command(("ioreg", "-r", "-d", "1", "-c", "IOHIDSystem"))
MACMON = Command(("macmon", "pipe", "-s", "1", "-i", "500"), limit_seconds=4)
PORTS = Command(("networksetup", "-listallhardwareports"), limit_seconds=5)
SERVICES = Command(("networksetup", "-listnetworkserviceorder"), limit_seconds=5)
THUNDERBOLT = Command(("system_profiler", "SPThunderboltDataType", "-json"), limit_seconds=15)
RDMA_STATUS = Command(("rdma_ctl", "status"))
RDMA_DEVICES = Command(("ibv_devices",))
RDMA_STATES = Command(("ibv_devinfo",))


@dataclass(frozen=True, slots=True)
class MacFacts:
    """What does not change while an agent runs."""

    system: MacSystem = field(default_factory=MacSystem)
    gpu_cores: int | None = None
    metal: MetalDevice = field(default_factory=MetalDevice)


@dataclass(frozen=True, slots=True)
class MacMemory:
    """Memory now."""

    pages: Pages | None = None
    pressure: MemoryPressure | None = None
    swap: Swap | None = None


@dataclass(frozen=True, slots=True)
class MacPower:
    """Heat and power now."""

    thermal_warning: bool | None = None
    low_power_mode: bool | None = None
    battery: Battery | None = None
    idle_seconds: float | None = None
    """Since someone last touched keyboard, mouse or trackpad."""


@dataclass(frozen=True, slots=True)
class MacLinks:
    """Ports and cables now."""

    ports: tuple[Port, ...] = ()
    services: tuple[Service, ...] = ()
    thunderbolt: tuple[ThunderboltPort, ...] = ()
    macos: tuple[int, ...] | None = None
    rdma_enabled: bool | None = None
    rdma_devices: tuple[rdma.RdmaDevice, ...] = ()
    rdma_port_active: dict[str, bool] = field(default_factory=dict)
    """By device: ``rdma_en2``."""

    def thunderbolt_of(self, chip: str) -> Thunderbolt:
        """What :func:`resources.rdma_verdict.verdict_over_cable` wants to know of this Mac."""
        devices: dict[int | None, str] = {
            port.thunderbolt_port: port.device for port in self.ports if port.thunderbolt_port is not None
        }
        cables = [
            Cable(
                port.domain_id,
                tuple(peer.domain_id for peer in port.peers),
                self.rdma_port_active.get(f"rdma_{devices.get(port.receptacle)}"),
            )
            for port in self.thunderbolt
            if port.domain_id is not None and port.peers
        ]
        return Thunderbolt(has_thunderbolt_5(chip, self.thunderbolt), self.macos, self.rdma_enabled, tuple(cables))


async def ask_facts(run: Run = run_command) -> MacFacts:
    """Ask once; takes as long as MLX needs to start."""
    system, gpu, metal = await _all(run, SYSTEM, IOREG, METAL)
    cores = gpu_from_ioreg(gpu).cores
    if cores is None:  # the same from a command that is slower by a quarter of a second
        cores = gpu_cores_from_displays(await run(DISPLAYS) or "")
    return MacFacts(system_from_sysctl(system), cores, metal_device(metal))


async def ask_memory(run: Run = run_command) -> MacMemory:
    """Two short commands."""
    pages, (pressure, swap) = await asyncio.gather(ask_pages(run), ask_pressure(run))
    return MacMemory(pages, pressure, swap)


async def ask_pages(run: Run = run_command) -> Pages | None:
    """Where the memory is."""
    return pages_from_vm_stat(await run(VM_STAT) or "")


async def ask_pressure(run: Run = run_command) -> tuple[MemoryPressure | None, Swap | None]:
    """How short it is."""
    values = await run(MEMORY) or ""
    return pressure_from_sysctl(values), swap_from_sysctl(values)


async def ask_gpu(run: Run = run_command) -> Gpu:
    """Load of the GPU."""
    return gpu_from_ioreg(await run(IOREG) or "")


async def ask_sensors(run: Run = run_command) -> Sensors:
    """Power and temperature, where macmon is installed; it watches for half a second."""
    return sensors_from_macmon(await run(MACMON) or "")


async def ask_power(run: Run = run_command) -> MacPower:
    """Heat, battery, settings."""
    thermal, battery, settings, idle = await _all(run, THERMAL, BATTERY, SETTINGS, IDLE)
    heat = thermal_from_pmset(thermal)
    return MacPower(
        thermal_warning=heat.warning if heat is not None else None,
        low_power_mode=settings_from_pmset(settings).low_power_mode,
        battery=battery_from_pmset(battery),
        idle_seconds=idle_seconds_from_ioreg(idle),
    )


async def ask_links(run: Run = run_command) -> MacLinks:
    """Slow: system_profiler alone takes a good part of a second."""
    ports, services, thunderbolt, version, status, devices, states = await _all(
        run, PORTS, SERVICES, THUNDERBOLT, VERSION, RDMA_STATUS, RDMA_DEVICES, RDMA_STATES
    )
    return MacLinks(
        ports=ports_from_networksetup(ports),
        services=services_from_networksetup(services),
        thunderbolt=thunderbolt_ports(thunderbolt),
        macos=macos_version(version),
        rdma_enabled=rdma.rdma_enabled(status),
        rdma_devices=rdma.rdma_devices(devices),
        rdma_port_active=rdma.rdma_port_active(states),
    )


async def _all(run: Run, *commands: Command) -> list[str]:
    """All answers at once; one that did not come is empty, which every parser takes for unknown."""
    return [answer or "" for answer in await asyncio.gather(*(run(command) for command in commands))]
