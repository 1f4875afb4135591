"""What was measured is kept by the version of MLX that it was measured with."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import msgspec
import pytest

from resources.calibration import CALIBRATION_NAME, StoredCalibrations, shared
from resources.cpu_share import CpuShare, refusal
from resources.node import Calibration

FOUND = Calibration({"4-bit": 1000, "bf16": 400}, 1e9, 1e-4)


def test_each_version_of_mlx_has_its_own(tmp_path):
    StoredCalibrations(tmp_path / "new").keep("1.0", FOUND)
    stored = StoredCalibrations(tmp_path / "new")
    other = Calibration({"4-bit": 2000}, 2e9, 0.0)
    stored.keep("1.1", other)
    again = StoredCalibrations(tmp_path / "new")
    assert (again.of_version("1.0"), again.of_version("1.1"), again.of_version("2")) == (FOUND, other, None)


def test_what_another_process_writes_is_seen(tmp_path):
    stored = StoredCalibrations(tmp_path)
    assert stored.of_version("1.0") is None
    StoredCalibrations(tmp_path).keep("1.0", FOUND)
    assert stored.of_version("1.0") == FOUND


@pytest.mark.parametrize("text", ["", "{", '{"1.0": 3}', '{"1.0": {"weight_bytes_per_second": {"4-bit": -1}}}'])
def test_a_damaged_file_is_no_calibration(tmp_path, text):
    (tmp_path / CALIBRATION_NAME).write_text(text)
    assert StoredCalibrations(tmp_path).of_version("1.0") is None


def test_half_a_core_is_half_as_fast():
    assert shared(FOUND, 0.5) == Calibration({"4-bit": 500, "bf16": 200}, 5e8, 2e-4)
    assert shared(msgspec.structs.replace(FOUND, cache_bytes_per_second=700), 0.5).cache_bytes_per_second == 350


@pytest.mark.skipif(refusal(0.2) is not None, reason=str(refusal(0.2)))
def test_a_process_gets_its_share_of_a_core_and_the_cgroup_goes():
    share = CpuShare(f"test-{os.getpid()}", 0.2)
    code = "import sys, time\nsys.stdin.readline()\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass\n"
    code += "print(time.process_time())"
    try:
        before = time.monotonic()
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            share.take(process.pid)
            answer, _ = process.communicate(b"\n", timeout=60)
        wall = time.monotonic() - before
    finally:
        share.close()
    assert float(answer) < 0.2 * wall + 0.15  # starting Python before it was taken counts too
    with pytest.raises(OSError, match="between"):
        CpuShare("none", 2.0)
