"""Measures how fast this machine reads weights, in a process of its own: whoever asks keeps MLX out."""

from __future__ import annotations

import asyncio
import logging
import resource
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from resources import starting
from resources.calibration import StoredCalibrations
from resources.cpu_load import CpuLoad, core_seconds
from resources.node import Calibration
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

QUIET_LOAD = 0.2
"""Of all cores: what else runs and takes no more hardly shows in what is measured."""
_LIMIT_SECONDS = 60.0
_LOOK_SECONDS = 2.0


class Measured(NamedTuple):
    """What was measured, and what else the machine did meanwhile."""

    calibration: Calibration
    others_load: float
    """Of the time of all cores, what others took: 0 to 1."""


def measure() -> Measured:
    """A few seconds of work for the GPU. Raises :class:`PomonaError` if it cannot be measured."""
    busy_before, total_before = core_seconds()
    own_before = _seconds_of_children()
    try:
        done = subprocess.run(
            starting.engine("calibrate"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
        if done.returncode == 0:
            busy, total = core_seconds()
            others = busy - busy_before - (_seconds_of_children() - own_before)
            load = others / max(total - total_before, 1e-9)
            return Measured(msgspec.json.decode(done.stdout, type=Calibration), min(max(load, 0.0), 1.0))
    except subprocess.TimeoutExpired as error:
        raise PomonaError(f"Calibrating took more than {_LIMIT_SECONDS:.0f} s; quit other programs first.") from error
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    raise PomonaError(f"This machine could not be calibrated: {lines[-1] if lines else 'MLX failed'}.")


async def measure_once(folder: Path, mlx_version: str) -> None:
    """Measure and keep it in ``folder``, if this machine was not measured yet with this version of MLX.

    Waits until the machine does little else, since plans count with what was measured for good.
    """
    calibrations = StoredCalibrations(folder)
    while calibrations.of_version(mlx_version) is None:
        await _quiet()
        try:
            measured = await asyncio.to_thread(measure)
            if measured.others_load <= QUIET_LOAD:
                calibrations.keep(mlx_version, measured.calibration)
            else:
                log.info("others took %.0f%% of this machine while it was measured", 100 * measured.others_load)
        except (PomonaError, OSError) as error:
            log.warning("the speed of this machine stays unknown: %s", error)
            return


async def _quiet() -> None:
    """Return once little runs here."""
    load = CpuLoad()
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        latest = load.latest()
        if latest is not None and latest <= QUIET_LOAD:
            return


def _seconds_of_children() -> float:
    """Processor time of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
