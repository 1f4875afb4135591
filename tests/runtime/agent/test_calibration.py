"""A machine is measured by itself only while it does little else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

from resources import starting
from resources.calibration import StoredCalibrations
from resources.node import Calibration
from runtime.agent import calibration
from runtime.agent.calibration import QUIET_LOAD, Measured, measure, measure_once

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

WHILE_BUSY = Calibration({"4-bit": 100}, 1e9, 1e-4)
WHILE_QUIET = Calibration({"4-bit": 1000}, 1e10, 1e-5)


class Load:
    """Busy at first, as a machine is that has just started other things."""

    def __init__(self) -> None:
        self._readings = iter((None, 0.9, 0.8, 0.1))

    def latest(self) -> float | None:
        return next(self._readings)


async def test_what_was_measured_beside_other_work_is_measured_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = iter([Measured(WHILE_BUSY, 0.4), Measured(WHILE_QUIET, 0.02)])
    monkeypatch.setattr(calibration, "measure", lambda: next(found))
    monkeypatch.setattr(calibration, "CpuLoad", Load)
    monkeypatch.setattr(calibration, "_LOOK_SECONDS", 0.0)
    await measure_once(tmp_path, "1.0")
    assert StoredCalibrations(tmp_path).of_version("1.0") == WHILE_QUIET
    await measure_once(tmp_path, "1.0")  # known by now
    assert next(found, None) is None


def test_the_load_of_others_is_known_after_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    found = msgspec.json.encode(WHILE_BUSY).decode()
    code = f"import time; time.sleep(1.5); print({found!r})"
    monkeypatch.setattr(starting, "engine", lambda _module: (sys.executable, "-c", code))
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        measured = measure()
    finally:
        for process in spinning:
            process.kill()
            process.wait()
    assert measured.calibration == WHILE_BUSY
    assert measured.others_load > QUIET_LOAD
