"""``pomona calibrate``: how fast this machine reads weights, measured in a few seconds and kept for plans."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import msgspec

from resources import starting
from resources.calibration import StoredCalibrations
from resources.node import Calibration
from runtime.agent.folder import data_folder
from runtime.errors import PomonaError

_LIMIT_SECONDS = 60.0


def run_calibrate(*, as_json: bool) -> int:
    """Measure, keep, say, and return the exit status. Raises :class:`PomonaError` if it cannot be measured or kept."""
    found = measure()
    folder = data_folder()
    try:
        StoredCalibrations(folder).keep(importlib.metadata.version("mlx"), found)
    except OSError as error:
        raise PomonaError(
            f"The calibration cannot be kept in {folder} ({error.strerror}); make it yours and try again."
        ) from error
    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        rates = ", ".join(f"{kind} {rate / 1e9:.1f} GB/s" for kind, rate in found.weight_bytes_per_second.items())
        sys.stdout.write(
            f"This machine reads weights at {rates}; a layer takes {found.layer_overhead_seconds * 1e6:.0f} µs beside. "
            "Plans count with it from now on.\n"
        )
    return 0


def measure() -> Calibration:
    """Measured in a process of its own, because this one must not import MLX. Raises :class:`PomonaError`."""
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
