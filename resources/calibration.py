"""What `pomona calibrate` measured on this machine, kept for each version of MLX that it was measured with."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

import msgspec

from resources.node import Calibration

if TYPE_CHECKING:
    from pathlib import Path

CALIBRATION_NAME = "calibration.json"
_log = logging.getLogger(__name__)


class StoredCalibrations:
    """The file in a node's data folder; another process may write it at any time."""

    def __init__(self, data_folder: Path) -> None:
        self._path = data_folder / CALIBRATION_NAME
        self._read_at: int | None = None
        self._known: dict[str, Calibration] = {}

    def of_version(self, mlx_version: str) -> Calibration | None:
        """What was measured with this version, or None. Reads the file only if it has changed."""
        try:
            changed_at = self._path.stat().st_mtime_ns
            if changed_at != self._read_at:
                self._read_at = changed_at
                self._known = msgspec.json.decode(self._path.read_bytes(), type=dict[str, Calibration])
        except FileNotFoundError:
            self._known = {}
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            _log.warning("%s cannot be read: %s", self._path, error)
            self._known = {}
        return self._known.get(mlx_version)

    def keep(self, mlx_version: str, calibration: Calibration) -> None:
        """Write it beside those of other versions. Raises OSError."""
        self.of_version(mlx_version)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_suffix(".partial")
        with contextlib.ExitStack() as stack:
            stack.callback(partial.unlink, missing_ok=True)
            partial.write_bytes(msgspec.json.encode({**self._known, mlx_version: calibration}))
            partial.rename(self._path)


def shared(calibration: Calibration, share: float) -> Calibration:
    """The same for a node that has only ``share`` of a core, which one thread of MLX would use whole."""
    cache_rate = calibration.cache_bytes_per_second
    return Calibration(
        {kind: max(1, round(rate * share)) for kind, rate in calibration.weight_bytes_per_second.items()},
        calibration.flops_per_second * share,
        min(calibration.layer_overhead_seconds / share, 1.0),
        None if cache_rate is None else max(1, round(cache_rate * share)),
    )
