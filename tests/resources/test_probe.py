"""What this machine says of itself is true, and what it does not say is named unknown."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import mlx.core as mx
import msgspec
import psutil
import pytest

from resources import probe
from resources.mac.gpu import Gpu
from resources.mac.macmon import Sensors
from resources.mac.memory import Pages, Swap
from resources.monitor import Reading
from resources.node import Battery, NodeResources, Versions
from resources.probe import Machine, probe_machine, snapshot
from resources.survey import MacMemory, MacPower, ask_facts

ROOT = Path(__file__).parents[2]


def test_the_whole_machine():
    machine = probe_machine()
    node = snapshot(machine, "f" * 64, "Studio")
    assert (node.node_id, node.name, node.virtual) == ("f" * 64, "Studio", False)
    assert node.chip
    assert node.memory_total_bytes == psutil.virtual_memory().total
    assert 0 < node.memory_available_bytes <= node.memory_total_bytes
    assert node.versions.python == platform.python_version()
    assert node.versions.mlx_lm == importlib.metadata.version("mlx-lm")


def proc(path: str, key: str) -> int:
    """A number of kB in ``/proc``, as bytes."""
    line = next(line for line in Path(path).read_text().splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1]) << 10


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_every_field_is_true_against_proc_and_the_mlx_device():
    node = snapshot(probe_machine(), "f" * 64, "Box")
    assert node.memory_total_bytes == proc("/proc/meminfo", "MemTotal")
    assert abs(node.memory_available_bytes - proc("/proc/meminfo", "MemAvailable")) < node.memory_total_bytes / 4
    assert node.swap_total_bytes == proc("/proc/meminfo", "SwapTotal")
    assert node.swap_used_bytes is not None
    assert 0 <= node.swap_used_bytes <= node.swap_total_bytes
    disk = shutil.disk_usage(Path.home())
    assert node.disk_total_bytes == disk.total
    assert node.disk_free_bytes is not None
    assert node.disk_free_bytes <= node.disk_total_bytes
    assert node.cpu_cores is None or 0 < node.cpu_cores <= (os.cpu_count() or 1)
    device = asyncio.run(ask_facts()).metal
    assert device.name == mx.device_info()["device_name"]
    assert device.working_set_limit_bytes is None  # MLX's CPU backend has none
    unknown = (
        node.gpu_cores, node.memory_bandwidth_bytes_per_second, node.memory_bandwidth_source,
        node.gpu_memory_limit_bytes, node.memory_pressure, node.gpu_load, node.gpu_power_watts,
        node.gpu_temperature_celsius, node.system_power_watts, node.thermal_warning, node.low_power_mode,
    )  # fmt: skip
    assert set(unknown) == {None}


def test_free_disk_is_that_of_the_folder_even_before_it_is_made(tmp_path, monkeypatch):
    asked = []

    def usage(folder):
        asked.append(folder)
        return SimpleNamespace(total=900, free=100)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    node = snapshot(probe_machine(), "f" * 64, "Box", models_folder=tmp_path / "models" / "one")
    assert asked == [tmp_path]
    assert (node.disk_total_bytes, node.disk_free_bytes) == (900, 0)


def test_a_disk_that_tells_nothing_is_unknown(monkeypatch):
    def broken(_folder):
        raise OSError("gone")

    monkeypatch.setattr(shutil, "disk_usage", broken)
    node = snapshot(probe_machine(), "f" * 64, "Box")
    assert (node.disk_total_bytes, node.disk_free_bytes) == (None, None)


GIB = 1 << 30
STUDIO = Machine("Apple M5 Max", 64 * GIB, Versions("1", "2", "3", "4", "macOS 26.2"), 18, 40, 56 * GIB)
PAGES = Pages(GIB, wired_bytes=4 * GIB, internal_bytes=6 * GIB, purgeable_bytes=GIB, compressor_bytes=3 * GIB)


def test_a_reading_of_a_mac_fills_the_snapshot():
    reading = Reading(
        MacMemory(PAGES, "warning", Swap(2 * GIB, GIB)),
        Gpu(load=0.5),
        Sensors(gpu_power_watts=20.5, gpu_temperature_celsius=61.0, system_power_watts=60.0),
        MacPower(thermal_warning=True, low_power_mode=False, battery=Battery(80, on_mains=True)),
    )
    node = snapshot(STUDIO, "f" * 64, "Studio", reading=reading)
    assert node.memory_available_bytes == (64 - 12) * GIB
    assert (node.memory_pressure, node.swap_total_bytes, node.swap_used_bytes) == ("warning", 2 * GIB, GIB)
    assert (node.gpu_load, node.gpu_power_watts, node.gpu_temperature_celsius) == (0.5, 20.5, 61.0)
    assert (node.system_power_watts, node.thermal_warning, node.low_power_mode) == (60.0, True, False)
    assert (node.gpu_cores, node.gpu_memory_limit_bytes, node.cpu_cores) == (40, 56 * GIB, 18)
    assert node.memory_bandwidth_bytes_per_second == 614 * 10**9
    assert msgspec.json.decode(msgspec.json.encode(node), type=NodeResources) == node


def test_the_gpu_limit_caps_what_is_available():
    machine = replace(STUDIO, gpu_memory_limit_bytes=1 << 20)
    assert snapshot(machine, "f" * 64, "Studio").memory_available_bytes == 1 << 20


def test_an_older_node_s_answer_still_decodes():
    old = {
        "node_id": "f" * 64, "name": "Old", "chip": "Apple M1", "memory_total_bytes": 8, "memory_available_bytes": 4,
        "virtual": False, "versions": {"pomona": "0", "mlx": "0", "mlx_lm": "0", "python": "3", "system": "macOS 14"},
    }  # fmt: skip
    assert msgspec.convert(old, NodeResources).gpu_cores is None


def test_a_budget_caps_total_and_available():
    node = snapshot(probe_machine(), "f" * 64, "One of three", budget_bytes=2**20)
    assert (node.memory_total_bytes, node.memory_available_bytes, node.virtual) == (2**20, 2**20, True)


def test_a_budget_adds_no_memory():
    machine = probe_machine()
    node = snapshot(machine, "f" * 64, "One of three", budget_bytes=2**60)
    assert node.memory_total_bytes == machine.memory_bytes
    assert node.memory_available_bytes < machine.memory_bytes


@pytest.mark.parametrize("budget", [0, -1])
def test_no_budget_is_no_budget(budget):
    with pytest.raises(ValueError, match="memory budget"):
        snapshot(probe_machine(), "f" * 64, "None", budget_bytes=budget)


def test_memory_is_asked_each_time(monkeypatch):
    machine = probe_machine()
    memory = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory._replace(available=12345))
    assert snapshot(machine, "f" * 64, "Studio").memory_available_bytes == 12345


def test_a_machine_that_tells_nothing_is_unknown_and_works(monkeypatch, tmp_path):
    def missing(_name):
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(probe, "_CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.metadata, "version", missing)
    machine = probe_machine()
    assert machine.chip == "unknown chip"
    assert (machine.versions.pomona, machine.versions.mlx, machine.versions.mlx_lm) == ("unknown",) * 3


async def test_a_mac_is_asked_by_sysctl(monkeypatch, tmp_path):
    sysctl = tmp_path / "sysctl"
    sysctl.write_text(
        '#!/bin/sh\n[ "$1" = machdep.cpu.brand_string ] && echo "machdep.cpu.brand_string: Apple M4 Pro"\n'
    )
    sysctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("26.1", ("", "", ""), "arm64"))
    machine = await asyncio.to_thread(probe_machine)  # as the agent does
    assert machine.chip == "Apple M4 Pro"
    assert machine.versions.system == "macOS 26.1"
    node = snapshot(machine, "f" * 64, "Mini")
    assert (node.memory_bandwidth_bytes_per_second, node.memory_bandwidth_source) == (273 * 10**9, "table")


def test_a_probe_that_fails_leaves_its_field_unknown(monkeypatch, tmp_path):
    sysctl = tmp_path / "sysctl"
    sysctl.write_text("#!/bin/sh\nexit 1\n")
    sysctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert probe_machine().chip == "unknown chip"


def test_a_linux_without_os_release_is_named_by_its_kernel(monkeypatch):
    def missing():
        raise OSError

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "freedesktop_os_release", missing)
    assert probe_machine().versions.system == f"{platform.system()} {platform.release()}"


def test_probing_imports_no_mlx():
    program = "import sys, resources.probe as p; p.probe_machine(); sys.exit('mlx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
