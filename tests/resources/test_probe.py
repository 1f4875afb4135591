"""What this machine says of itself is true, and what it does not say is named unknown."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from resources import probe
from resources.probe import probe_machine, snapshot

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


def test_a_mac_is_asked_by_sysctl(monkeypatch, tmp_path):
    sysctl = tmp_path / "sysctl"
    sysctl.write_text('#!/bin/sh\n[ "$*" = "-n machdep.cpu.brand_string" ] && echo "Apple M4 Pro"\n')
    sysctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("26.1", ("", "", ""), "arm64"))
    machine = probe_machine()
    assert machine.chip == "Apple M4 Pro"
    assert machine.versions.system == "macOS 26.1"


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
