"""What the doctor finds: each trouble is made for real, in namespaces where it would disturb others."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from discovery.interfaces import lan_addresses
from discovery.local_network import Seen
from resources.node import Battery
from resources.processes import orphan_workers
from resources.survey import MacPower
from runtime.agent import this_machine
from runtime.cli import doctor
from runtime.cli.commands import main
from runtime.cli.doctor import (
    DoctorOptions,
    check_disk,
    check_model,
    check_orphans,
    check_power,
    check_store,
    check_versions,
)
from runtime.cli.doctor_network import (
    LOOPBACK,
    Finding,
    check_local_network,
    check_mdns_port,
    check_multicast,
    check_port,
)

ROOT = Path(__file__).parents[3]


def no_window(_home: Path, _folder: Path | None) -> int:
    raise AssertionError("no window was asked for")


def can_unshare(*flags: str) -> bool:
    try:
        return subprocess.run(["unshare", "-r", *flags, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


own_network = pytest.mark.skipif(not can_unshare("-n"), reason="no network namespaces here")
own_mounts = pytest.mark.skipif(not can_unshare("-m"), reason="no mount namespaces here")


def apart(flags: str, program: str, before: str = ":") -> list[Finding]:
    """What a program, in namespaces of its own, finds."""
    script = "import msgspec, socket, sys\nfrom pathlib import Path\nfrom runtime.cli.doctor import *\n"
    script += f"from runtime.cli.doctor_network import *\n{program}\n"
    script += "sys.stdout.write(msgspec.json.encode(found).decode())"
    done = subprocess.run(
        ["unshare", "-r", flags, "sh", "-c", f'{before} && exec "$0" -c "$1"', sys.executable, script],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    return msgspec.json.decode(done.stdout, type=list[Finding])


def test_a_free_port_is_no_finding():
    assert check_port(0) == []


def test_a_port_that_is_taken_is_found_with_its_holder(capsys):
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        (finding,) = check_port(port)
        assert main(["doctor", "--port", str(port), "--json"], no_window) == 1
    assert finding.stops
    assert f"Port {port} is taken by " in finding.problem
    assert str(os.getpid()) in finding.problem
    assert "--port" in finding.advice
    assert finding in msgspec.json.decode(capsys.readouterr().out, type=list[Finding])


def test_a_port_that_one_may_not_have_is_found():
    (finding,) = check_port(0, host="192.0.2.1")  # reserved for documentation: no interface has it
    assert finding.stops


def test_multicast_inside_this_machine_works():
    assert check_multicast() == []
    assert check_mdns_port() == []


@own_network
def test_no_multicast_is_found():
    (finding,) = apart("-n", "found = check_multicast()")  # a new namespace's loopback is down
    assert finding.stops
    assert "Multicast DNS does not work inside this machine" in finding.problem
    assert "loopback" in finding.advice


@own_network
def test_an_mdns_port_that_someone_keeps_is_found():
    (finding,) = apart("-n", "s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 5353)); found = check_mdns_port()")
    assert finding.stops
    assert "5353" in finding.problem


def test_a_permission_that_is_missing_is_found_and_stops_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("POMONA_HOME", str(tmp_path))
    denied = Seen(("192.168.1.2",), (errno.EHOSTUNREACH,), has_privacy=True, system="denies")
    monkeypatch.setattr(this_machine, "look", lambda _known: denied)
    (finding,) = check_local_network()
    assert not finding.stops
    assert "macOS does not let Pomona" in finding.problem
    assert "Local Network" in finding.advice
    assert not list(tmp_path.iterdir())  # it only looked


def test_a_network_where_nobody_answers_is_no_trouble(monkeypatch):
    monkeypatch.setattr(this_machine, "look", lambda _known: Seen(("192.168.1.2",), (0,), heard_itself=True))
    assert check_local_network() == []


def test_networks_that_lead_elsewhere():
    assert not [address for address in lan_addresses() if address.startswith("127.")]


@own_mounts
def test_a_disk_that_is_nearly_full_is_found(tmp_path):
    folder = f"{tmp_path}/small"
    (finding,) = apart(
        "-m",
        f"found = check_disk([Path('{folder}/models'), Path('{folder}')])",
        f"mkdir {folder} && mount -t tmpfs -o size=1m none {folder}",
    )
    assert finding.stops
    assert f"The disk of {folder} is nearly full" in finding.problem


def test_a_disk_that_gets_full_is_no_stop(tmp_path):
    assert check_disk([tmp_path], stop_below_bytes=0, warn_below_bytes=0) == []
    (finding,) = check_disk([tmp_path, tmp_path / "later"], stop_below_bytes=0, warn_below_bytes=1 << 60)
    assert not finding.stops


def fake_distribution(folder: Path, name: str, version: str, *requires: str) -> None:
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n")


def test_the_versions_that_are_locked_are_no_finding():
    assert check_versions() == []


def test_another_mlx_lm_is_found(tmp_path, monkeypatch):
    fake_distribution(tmp_path, "mlx-lm", "0.1.0")
    monkeypatch.syspath_prepend(tmp_path)
    (finding,) = check_versions()
    assert finding.stops
    assert "mlx-lm is 0.1.0 here; this Pomona needs 0." in finding.problem


def test_an_mlx_that_is_not_there_is_found(tmp_path, monkeypatch):
    fake_distribution(tmp_path, "some-app", "1", "mlx[cpu]==0.1; sys_platform == 'linux'", "mlx-lm==9.9", "aiohttp>=3")
    monkeypatch.syspath_prepend(tmp_path)
    assert ["mlx is" in found.problem or "mlx-lm is" in found.problem for found in check_versions("some-app")] == [
        True
    ] * 2
    (missing,) = check_versions("never-installed")
    assert missing.stops


def test_a_model_that_is_well_is_no_finding(demo_model):
    assert check_model(demo_model) == []


def test_a_model_that_cannot_be_read_is_found(tmp_path, demo_model, capsys):
    (missing,) = check_model(tmp_path / "nowhere")
    assert missing.stops

    dangling = tmp_path / "dangling"
    dangling.mkdir()
    for path in demo_model.iterdir():
        (dangling / path.name).symlink_to(path)
    (dangling / "tokenizer.json").unlink()
    (dangling / "tokenizer.json").symlink_to(tmp_path / "gone")
    (finding,) = check_model(dangling)
    assert "tokenizer.json cannot be read" in finding.problem

    cut = tmp_path / "cut"
    cut.mkdir()
    for path in demo_model.iterdir():
        (cut / path.name).write_bytes(path.read_bytes()[:1000])
    assert check_model(cut)

    assert main(["doctor", str(missing_folder := tmp_path / "nowhere")], no_window) == 1
    assert f"Stops: The model in {missing_folder} cannot be read" in capsys.readouterr().out


@contextmanager
def as_someone_else():
    """Without root's right to read everything, for as long as the block lasts."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


def test_a_model_of_someone_else_is_found(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir(mode=0)
    with as_someone_else():
        (finding,) = check_model(folder)
    assert finding.stops
    assert str(folder) in finding.problem


def test_a_folder_of_fetched_models_that_is_someone_else_s_is_found():
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch) / "models"
        Path(scratch).chmod(0o755)  # anyone may look in, other than into pytest's own
        assert check_store(store) == []
        (store / "small@1").mkdir(parents=True)
        assert check_store(store) == []
        for folder in (store / "small@1", store):
            folder.chmod(0)
            with as_someone_else():
                (finding,) = check_store(store)
            folder.chmod(0o755)
            assert finding.stops
            assert f"{folder} cannot be read" in finding.problem


def command(*before: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command itself, as a person runs it."""
    return subprocess.run(
        [*before, sys.executable, "-m", "pomona", "doctor"],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@own_network
def test_the_command_fails_without_multicast(tmp_path):
    done = command("unshare", "-r", "-n", POMONA_HOME=str(tmp_path))
    assert done.returncode == 1, done.stderr
    assert "Stops: Multicast DNS does not work inside this machine" in done.stdout


@own_mounts
def test_the_command_fails_on_a_disk_that_is_nearly_full(tmp_path):
    mounting = f'mount -t tmpfs -o size=1m none {tmp_path} && exec "$@"'
    done = command("unshare", "-r", "-m", "sh", "-c", mounting, "-", POMONA_HOME=f"{tmp_path}/home")
    assert done.returncode == 1, done.stderr
    assert f"Stops: The disk of {tmp_path} is nearly full" in done.stdout


def test_the_command_fails_with_another_mlx(tmp_path):
    fake_distribution(tmp_path, "mlx", "0.1.0")
    done = command(POMONA_HOME=str(tmp_path), PYTHONPATH=str(tmp_path))
    assert done.returncode == 1, done.stderr
    assert "Stops: mlx is 0.1.0 here; this Pomona needs 0." in done.stdout


@contextmanager
def sleeping_worker(folder: Path, *before: str):
    """A process that looks like a worker and only sleeps: real ones end with their parent."""
    (folder / "pomona.py").write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(120)\n")
    words = [sys.executable, "-m", "pomona", "worker", "--job", "test", "--rank", "0"]
    starter = subprocess.Popen([*before, *words], cwd=folder, stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    try:
        yield starter, pid
    finally:
        os.kill(pid, signal.SIGKILL)
        starter.wait()
        starter.stdout.close()


def test_an_orphan_worker_is_found(tmp_path):
    with sleeping_worker(tmp_path, "sh", "-c", '"$@" & read -r _', "sh") as (starter, pid):
        starter.wait()  # its standard input was at an end: the parent is gone
        assert pid in orphan_workers()
        (finding,) = [finding for finding in check_orphans() if f"process {pid}" in finding.problem]
        assert f"kill {pid}" in finding.advice
        assert psutil.pid_exists(pid)  # found, not ended


def test_a_worker_that_has_its_parent_is_no_orphan(tmp_path):
    with sleeping_worker(tmp_path) as (_, pid):
        assert pid not in orphan_workers()


def test_what_slows_a_mac_down_is_told_and_stops_nothing():
    findings = check_power(MacPower(True, True, Battery(30, on_mains=False)), "critical")
    assert len(findings) == 4
    assert not any(finding.stops for finding in findings)
    assert check_power(MacPower(False, False, Battery(30, on_mains=True)), "normal") == []
    assert check_power(MacPower(), None) == []


def test_the_worst_comes_first_and_notes_alone_are_no_failure(monkeypatch, capsys):
    note, stop = Finding("a", "b", stops=False), Finding("c", "d", stops=True)
    for name in (
        "check_port",
        "check_mdns_port",
        "check_multicast",
        "check_local_network",
        "check_versions",
        "check_store",
        "check_orphans",
    ):
        monkeypatch.setattr(doctor, name, lambda *_: [])
    monkeypatch.setattr(doctor, "check_disk", lambda *_: [note])
    assert main(["doctor"], no_window) == 0
    assert capsys.readouterr().out == "Note: a\n  b\n"
    monkeypatch.setattr(doctor, "check_disk", lambda *_: [note, stop])
    assert doctor.examine(DoctorOptions()) == [stop, note]
    monkeypatch.setattr(doctor, "check_disk", lambda *_: [])
    assert main(["doctor"], no_window) == 0
    assert "Nothing is wrong" in capsys.readouterr().out


def test_a_variable_that_can_lock_the_gpu_is_named():
    (finding,) = doctor.check_environment({"MLX_METAL_FAST_SYNCH": "1"})
    assert "MLX_METAL_FAST_SYNCH" in finding.problem
    assert "unset MLX_METAL_FAST_SYNCH" in finding.advice
    assert not finding.stops
    assert doctor.check_environment({"MLX_METAL_FAST_SYNCH": "0"}) == doctor.check_environment({}) == []
