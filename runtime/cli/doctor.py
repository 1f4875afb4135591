"""``pomona doctor``: what is wrong on this machine, in plain words, and what to do about it.

Each check is a function that returns what it found. It changes nothing, sends nothing beyond the local network, and
ends no process: it says what to do.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import re
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from resources.processes import orphan_workers
from resources.survey import ask_memory, ask_power
from runtime.agent.folder import data_folder
from runtime.cli.doctor_network import (
    Finding,
    check_local_network,
    check_mdns_port,
    check_multicast,
    check_port,
)
from runtime.environment import FAST_SYNCH_VARIABLE, fast_synch_warning
from runtime.errors import PomonaError
from runtime.models.cache_folder import cache_folder
from runtime.models.layout import read_layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from resources.node import MemoryPressure
    from resources.survey import MacMemory, MacPower

EXIT_WELL, EXIT_STOPPED = 0, 1

_GIB = 1 << 30
_STOP_BELOW_BYTES = 1 * _GIB
_WARN_BELOW_BYTES = 10 * _GIB
_PIN = re.compile(r"(mlx|mlx-lm)(?:\[[^\]]*\])?==([\w.!+]+)")


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What to look at."""

    port: int = 0
    """The port that an agent is to listen on; 0 if any will do."""
    models: tuple[Path, ...] = ()
    """Folders of models that have to be readable."""
    as_json: bool = False


def run_doctor(options: DoctorOptions) -> int:
    """Look, say what was found, and return the exit status: 1 if anything stops a job."""
    findings = examine(options)
    if options.as_json:
        sys.stdout.write(msgspec.json.encode(findings).decode() + "\n")
    elif findings:
        for finding in findings:
            sys.stdout.write(f"{'Stops:' if finding.stops else 'Note:'} {finding.problem}\n  {finding.advice}\n")
    else:
        sys.stdout.write("Nothing is wrong on this machine, as far as Pomona can see.\n")
    return EXIT_STOPPED if any(finding.stops for finding in findings) else EXIT_WELL


def examine(options: DoctorOptions) -> list[Finding]:
    """All checks, what stops a job first."""
    findings = [
        *check_port(options.port),
        *check_mdns_port(),
        *check_multicast(),
        *check_local_network(),
        *check_disk([data_folder(), cache_folder()]),
        *check_versions(),
        *check_store(data_folder() / "models"),
        *(finding for folder in options.models for finding in check_model(folder)),
        *check_orphans(),
        *check_environment(os.environ),
    ]
    if sys.platform == "darwin":
        power, memory = asyncio.run(_ask_mac())
        findings += check_power(power, memory.pressure)
    return sorted(findings, key=lambda finding: not finding.stops)


async def _ask_mac() -> tuple[MacPower, MacMemory]:
    return await asyncio.gather(ask_power(), ask_memory())


def check_environment(environment: Mapping[str, str]) -> list[Finding]:
    """Whether a variable is set that makes MLX dangerous over several Macs."""
    warning = fast_synch_warning(environment)
    advice = f"Remove it: unset {FAST_SYNCH_VARIABLE}, and look into the files that your shell reads at login."
    return [Finding(warning, advice, stops=False)] if warning else []


def check_disk(
    folders: Sequence[Path], stop_below_bytes: int = _STOP_BELOW_BYTES, warn_below_bytes: int = _WARN_BELOW_BYTES
) -> list[Finding]:
    """Whether there is room where Pomona keeps things; each disk is named once."""
    findings = []
    seen = set()
    for folder in folders:
        existing = _existing(folder)
        try:
            device, free_bytes = existing.stat().st_dev, shutil.disk_usage(existing).free
        except OSError as error:
            findings.append(
                Finding(f"The folder {existing} cannot be looked at ({error.strerror}).", "Make it yours.", stops=True)
            )
            continue
        if device not in seen and free_bytes < warn_below_bytes:
            findings.append(
                Finding(
                    f"The disk of {existing} is nearly full: {free_bytes / _GIB:.1f} GB are free.",
                    "Make room: models take tens of GB, and a Mac whose memory is full needs disk for its swap.",
                    stops=free_bytes < stop_below_bytes,
                )
            )
        seen.add(device)
    return findings


def check_versions(distribution: str = "pomona") -> list[Finding]:
    """Whether the MLX that is installed is the one that Pomona was made and tested with."""
    try:
        requirements = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return [Finding("Pomona is not installed here.", "Run `make setup` in its folder.", stops=True)]
    pins = {found[1]: found[2] for found in map(_PIN.match, requirements) if found is not None}
    findings = []
    for name, wanted in sorted(pins.items()):
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            installed = None
        if installed != wanted:
            found_here = "is not installed" if installed is None else f"is {installed}"
            findings.append(
                Finding(
                    f"{name} {found_here} here; this Pomona needs {wanted}.",
                    "Run `make setup` in Pomona's folder: nodes with different versions give different answers.",
                    stops=True,
                )
            )
    return findings


def check_model(folder: Path) -> list[Finding]:
    """Whether the model in ``folder`` can be read, every weight file of it."""
    advice = "Check the folder's name and who may read it, or download the model again."
    try:
        read_layout(folder)
    except PomonaError as error:
        return [Finding(f"The model in {folder} cannot be read: {error}", advice, stops=True)]
    except OSError as error:
        return [Finding(f"The model in {folder} cannot be read ({error.strerror}).", advice, stops=True)]
    findings = []
    for path in sorted(folder.iterdir()):
        try:
            if path.is_dir():
                continue
            with path.open("rb") as file:
                file.read(1)
        except OSError as error:
            findings.append(Finding(f"{path} cannot be read ({error.strerror}).", advice, stops=True))
    return findings


def check_store(folder: Path) -> list[Finding]:
    """Whether what Pomona has fetched is readable, as far as folders go; one that is not there yet is well."""
    findings = []
    try:
        folders = (
            [folder, *(inside for inside in sorted(folder.iterdir()) if inside.is_dir())] if folder.exists() else []
        )
    except OSError as error:
        return [_unreadable(folder, error)]
    for each in folders:
        try:
            next(each.iterdir(), None)
        except OSError as error:
            findings.append(_unreadable(each, error))
    return findings


def _unreadable(folder: Path, error: OSError) -> Finding:
    problem = f"Pomona's folder of models {folder} cannot be read ({error.strerror})."
    return Finding(problem, "Make it yours, or delete it with `pomona models rm`.", stops=True)


def check_orphans() -> list[Finding]:
    """Workers of an earlier run whose agent is gone: they hold memory, and perhaps the GPU."""
    return [
        Finding(
            f"A worker of an earlier run is still there without its agent (process {pid}).",
            f"End it: kill {pid}. If it stays, kill -9 {pid}.",
            stops=False,
        )
        for pid in orphan_workers()
    ]


def check_power(power: MacPower, pressure: MemoryPressure | None) -> list[Finding]:
    """What slows a Mac down without stopping it."""
    findings = []
    if power.thermal_warning:
        findings.append(("This Mac is too warm and slows itself down.", "Give it air, and wait."))
    if power.low_power_mode:
        findings.append(("Low Power Mode is on, which slows the chip.", "Switch it off in System Settings, Battery."))
    if power.battery is not None and not power.battery.on_mains:
        findings.append((f"It runs on its battery ({power.battery.percent}%).", "Plug it in: models take much power."))
    if pressure in {"warning", "critical"}:
        findings.append((f"Memory is short here (macOS says: {pressure}).", "End programs that take much of it."))
    return [Finding(problem, advice, stops=False) for problem, advice in findings]


def _existing(folder: Path) -> Path:
    """``folder``, or the nearest above it that is there."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
