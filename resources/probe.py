"""What this machine has. Slow facts are asked once; memory, swap, disk and battery at every snapshot."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from resources.chips import table_bandwidth
from resources.linux import swap_from_meminfo
from resources.memory_parts import NO_WORKERS, WorkersMemory, default_cap, for_a_model, memory_parts
from resources.monitor import Reading
from resources.node import BandwidthSource, Battery, Calibration, LastSleep, NodeResources, Versions
from resources.parse import UNKNOWN, UNKNOWN_CHIP, chip_from_cpuinfo
from resources.survey import MacFacts, ask_facts

DISK_STEP_BYTES = 64 << 20
"""Free disk is rounded down to this, so that every log line of a system is no news."""

_CPUINFO = Path("/proc/cpuinfo")
_MEMINFO = Path("/proc/meminfo")
_MAX_PROC_BYTES = 64 * 1024
_AWAY_SECONDS = 4 * 3600.0
"""Whoever has not touched a machine for so long does not work on it today."""
_log = logging.getLogger(__name__)

_NOTHING_READ = Reading()


@dataclass(frozen=True, slots=True)
class Machine:
    """What does not change while an agent runs."""

    chip: str
    memory_bytes: int
    versions: Versions
    cpu_cores: int | None = None
    """Physical ones."""
    gpu_cores: int | None = None
    gpu_memory_limit_bytes: int | None = None
    """What Metal lets the GPU use, or what someone has set where Metal does not answer."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What an agent knows of its node beside what the system says."""

    workers: WorkersMemory = NO_WORKERS
    chosen_cap_bytes: int | None = None
    """What a person has said that Pomona may use at most."""
    calibration: Calibration | None = None
    given_bandwidth: int | None = None
    """Bytes per second that a virtual node counts as having; then it has no calibration."""
    last_sleep: LastSleep | None = None
    cpu_load: float | None = None


_NOTHING_KNOWN = AgentFacts()


def probe_machine() -> Machine:
    """Ask the system; on a Mac this takes as long as MLX needs to start, and is not for a loop's own thread.

    What the system does not tell is named unknown, or None.
    """
    if sys.platform == "darwin":
        facts = asyncio.run(ask_facts())
        chip = facts.system.chip
    else:
        facts = MacFacts()
        chip = chip_from_cpuinfo(_start_of(_CPUINFO))
    return Machine(
        chip=chip or UNKNOWN_CHIP,
        memory_bytes=psutil.virtual_memory().total,
        versions=_versions(),
        cpu_cores=psutil.cpu_count(logical=False),
        gpu_cores=facts.gpu_cores,
        gpu_memory_limit_bytes=facts.metal.working_set_limit_bytes or facts.system.wired_limit_bytes,
    )


def snapshot(
    machine: Machine,
    node_id: str,
    name: str,
    budget_bytes: int | None = None,
    reading: Reading = _NOTHING_READ,
    *,
    models_folder: Path | None = None,
    known: AgentFacts = _NOTHING_KNOWN,
) -> NodeResources:
    """This node now; takes well under a millisecond and starts no process.

    ``budget_bytes`` makes it a virtual node: one of several agents on this machine, none of which may count on more.
    ``reading`` is a Mac's :meth:`resources.monitor.Monitor.latest`, without which its memory is psutil's guess. Free
    disk is that of ``models_folder``, or of the person's own folder. Raises ValueError for a budget below 1.
    """
    if budget_bytes is not None and budget_bytes < 1:
        raise ValueError(f"a memory budget of {budget_bytes} bytes")
    total = machine.memory_bytes if budget_bytes is None else min(budget_bytes, machine.memory_bytes)
    parts = memory_parts(total, _unused_bytes(machine, reading), known.workers)
    sits = None if reading.power.idle_seconds is None else reading.power.idle_seconds < _AWAY_SECONDS
    usual = total if budget_bytes is not None else default_cap(total, someone_sits_here=bool(sits))
    cap = usual if known.chosen_cap_bytes is None else min(known.chosen_cap_bytes, total)
    bandwidth, source = _bandwidth(machine, known)
    swap = reading.memory.swap or swap_from_meminfo(_start_of(_MEMINFO))
    disk_total_bytes, disk_free_bytes = _disk(models_folder or Path.home())
    return NodeResources(
        node_id=node_id,
        name=name,
        chip=machine.chip,
        memory_total_bytes=total,
        memory_available_bytes=for_a_model(parts, machine.gpu_memory_limit_bytes, cap),
        virtual=budget_bytes is not None,
        versions=machine.versions,
        cpu_cores=machine.cpu_cores,
        gpu_cores=machine.gpu_cores,
        memory_bandwidth_bytes_per_second=bandwidth,
        memory_bandwidth_source=source,
        gpu_memory_limit_bytes=machine.gpu_memory_limit_bytes,
        memory=parts,
        memory_cap_bytes=cap,
        memory_cap_is_chosen=known.chosen_cap_bytes is not None,
        someone_sits_here=sits,
        memory_pressure=reading.memory.pressure,
        swap_total_bytes=swap.total_bytes if swap is not None else None,
        swap_used_bytes=swap.used_bytes if swap is not None else None,
        disk_total_bytes=disk_total_bytes,
        disk_free_bytes=disk_free_bytes,
        cpu_load=known.cpu_load,
        gpu_load=reading.gpu.load,
        gpu_power_watts=reading.sensors.gpu_power_watts,
        gpu_temperature_celsius=reading.sensors.gpu_temperature_celsius,
        system_power_watts=reading.sensors.system_power_watts,
        thermal_warning=reading.power.thermal_warning,
        low_power_mode=reading.power.low_power_mode,
        battery=reading.power.battery or _battery(),
        calibration=known.calibration,
        last_sleep=known.last_sleep,
    )


def _unused_bytes(machine: Machine, reading: Reading) -> int:
    """What nobody has, as the kernel counts."""
    if reading.memory.pages is not None:
        return max(machine.memory_bytes - reading.memory.pages.used_bytes, 0)
    available: int = psutil.virtual_memory().available  # on Linux the kernel's own MemAvailable
    return available


def _bandwidth(machine: Machine, known: AgentFacts) -> tuple[int | None, BandwidthSource | None]:
    """Bytes per second and where they are from: given, specified by the maker, or the fastest that was measured."""
    calibration = known.calibration
    if known.given_bandwidth is not None:
        return known.given_bandwidth, "given"
    specified = table_bandwidth(machine.chip, machine.gpu_cores, machine.memory_bytes)
    if specified is not None:
        return specified, "table"
    if calibration is not None and calibration.weight_bytes_per_second:
        return max(calibration.weight_bytes_per_second.values()), "measured"
    return None, None


def _disk(folder: Path) -> tuple[int | None, int | None]:
    """Total and free bytes of the disk where ``folder`` is, or will be."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        usage = shutil.disk_usage(folder)
    except OSError as error:
        _log.debug("the disk of %s tells nothing: %s", folder, error)
        return None, None
    return usage.total, usage.free // DISK_STEP_BYTES * DISK_STEP_BYTES


def _battery() -> Battery | None:
    try:
        found = psutil.sensors_battery()
    except (OSError, RuntimeError, ValueError, AttributeError) as error:  # what odd drivers have made it raise
        _log.debug("the battery tells nothing: %s", error)
        return None
    if found is None or found.power_plugged is None or not 0 <= found.percent <= 100:
        return None
    return Battery(percent=round(found.percent), on_mains=found.power_plugged)


def _versions() -> Versions:
    return Versions(
        pomona=_installed("pomona"),
        mlx=_installed("mlx"),
        mlx_lm=_installed("mlx-lm"),
        python=platform.python_version(),
        system=_system(),
    )


def _installed(distribution: str) -> str:
    """A package's version from its metadata: the package itself is not imported."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return UNKNOWN


def _system() -> str:
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}".rstrip()
    try:
        pretty = platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        pretty = None
    return pretty or f"{platform.system()} {platform.release()}".strip() or UNKNOWN


def _start_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_PROC_BYTES).decode(errors="replace")
    except OSError as error:
        _log.debug("%s tells nothing: %s", path, error)
        return ""
