"""``pomona calibrate``: how fast this machine reads weights, measured in a few seconds and kept for plans."""

from __future__ import annotations

import importlib.metadata
import sys

import msgspec

from resources.calibration import StoredCalibrations
from runtime.agent.calibration import QUIET_LOAD, measure
from runtime.agent.folder import data_folder
from runtime.errors import PomonaError


def run_calibrate(*, as_json: bool) -> int:
    """Measure, keep, say, and return the exit status. Raises :class:`PomonaError` if it cannot be measured or kept."""
    found, others_load = measure()
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
        cache = f", caches at {rate / 1e9:.1f} GB/s" if (rate := found.cache_bytes_per_second) else ""
        sys.stdout.write(
            f"This machine reads weights at {rates}{cache}; a layer takes "
            f"{found.layer_overhead_seconds * 1e6:.0f} µs beside. Plans count with it from now on.\n"
        )
    if others_load > QUIET_LOAD:
        sys.stderr.write(
            f"Others took {others_load:.0%} of this machine meanwhile: measure again when it has little to do.\n"
        )
    return 0
