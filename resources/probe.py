"""What this machine has. Slow facts are asked once, memory at every snapshot."""

from __future__ import annotations

import importlib.metadata
import logging
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from resources.node import NodeResources, Versions
from resources.parse import UNKNOWN, UNKNOWN_CHIP, chip_from_cpuinfo, chip_from_sysctl

_PROBE_SECONDS = 2.0
_CPUINFO = Path("/proc/cpuinfo")
_MAX_CPUINFO_BYTES = 64 * 1024
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Machine:
    """What does not change while an agent runs."""

    chip: str
    memory_bytes: int
    versions: Versions


def probe_machine() -> Machine:
    """Ask the system; takes milliseconds, at most a few seconds. What it does not tell is named unknown."""
    return Machine(chip=_chip(), memory_bytes=psutil.virtual_memory().total, versions=_versions())


def snapshot(machine: Machine, node_id: str, name: str, budget_bytes: int | None = None) -> NodeResources:
    """This node now.

    ``budget_bytes`` makes it a virtual node: one of several agents on this machine, none of which may count on more.
    Raises ValueError for a budget below 1.
    """
    if budget_bytes is not None and budget_bytes < 1:
        raise ValueError(f"a memory budget of {budget_bytes} bytes")
    total = machine.memory_bytes if budget_bytes is None else min(budget_bytes, machine.memory_bytes)
    return NodeResources(
        node_id=node_id,
        name=name,
        chip=machine.chip,
        memory_total_bytes=total,
        memory_available_bytes=min(psutil.virtual_memory().available, total),
        virtual=budget_bytes is not None,
        versions=machine.versions,
    )


def _chip() -> str:
    if sys.platform == "darwin":
        chip = chip_from_sysctl(_output("sysctl", "-n", "machdep.cpu.brand_string"))
    else:
        chip = chip_from_cpuinfo(_start_of(_CPUINFO))
    return chip or UNKNOWN_CHIP


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
            return file.read(_MAX_CPUINFO_BYTES).decode(errors="replace")
    except OSError as error:
        _log.debug("%s tells nothing: %s", path, error)
        return ""


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        _log.debug("%s tells nothing: %s", command[0], error)
        return ""
    return done.stdout.decode(errors="replace")
