"""Measures how fast this machine reads weights, in a process of its own: whoever asks keeps MLX out."""

from __future__ import annotations

import logging
import subprocess
from typing import TYPE_CHECKING

import msgspec

from resources import starting
from resources.calibration import StoredCalibrations
from resources.node import Calibration
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

_LIMIT_SECONDS = 60.0


def measure() -> Calibration:
    """A few seconds of work for the GPU. Raises :class:`PomonaError` if it cannot be measured."""
    try:
        done = subprocess.run(
            starting.engine("calibrate"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
        if done.returncode == 0:
            return msgspec.json.decode(done.stdout, type=Calibration)
    except subprocess.TimeoutExpired as error:
        raise PomonaError(f"Calibrating took more than {_LIMIT_SECONDS:.0f} s; quit other programs first.") from error
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    raise PomonaError(f"This machine could not be calibrated: {lines[-1] if lines else 'MLX failed'}.")


def measure_once(folder: Path, mlx_version: str) -> None:
    """Measure and keep it in ``folder``, if this machine was not measured yet with this version of MLX."""
    calibrations = StoredCalibrations(folder)
    if calibrations.of_version(mlx_version) is not None:
        return
    try:
        calibrations.keep(mlx_version, measure())
    except (PomonaError, OSError) as error:
        log.warning("the speed of this machine stays unknown: %s", error)
