"""What a machine says of itself, on systems that tell more or less."""

from __future__ import annotations

import platform
import sys

import pytest

from discovery import machine
from discovery.machine import hardware_id, machine_name

IOREG = """\
+-o J314cAP  <class IOPlatformExpertDevice, id 0x100000110, registered, matched, active>
    {
      "IOPlatformSerialNumber" = "C02ABCDEF123"
      "IOPlatformUUID" = "01234567-89ab-CDEF-0123-456789ABCDEF"
      "model" = <"MacBookPro18,3">
    }
"""


@pytest.fixture
def mac(monkeypatch):
    """Makes this machine a Mac whose commands print what the test says."""
    printed: dict[str, str] = {}
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(machine, "_output", lambda *command: printed.get(command[0], ""))
    return printed


def test_a_mac_has_its_computer_name_and_its_platform_uuid(mac):
    mac.update(scutil="Mia’s MacBook Pro\n", ioreg=IOREG)
    assert machine_name() == "Mia’s MacBook Pro"
    assert hardware_id() == "01234567-89AB-CDEF-0123-456789ABCDEF"


def test_a_mac_that_tells_nothing_is_still_usable(mac, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "mini.local")
    assert machine_name() == "mini"
    assert hardware_id() == ""


def test_commands_that_are_not_there_tell_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(platform, "node", lambda: "mini.local")
    assert machine_name() == "mini"
    assert hardware_id() == ""


@pytest.mark.parametrize(
    ("host", "name"), [("studio.local", "studio"), ("studio", "studio"), ("", "Unnamed"), ("\x07", "Unnamed")]
)
def test_other_machines_have_their_host_name(monkeypatch, host, name):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "node", lambda: host)
    assert machine_name() == name


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"0123456789abcdef0123456789abcdef\n", True), (b"uninitialized\n", False), (b"\xff\xfe", False), (None, False)],
)
def test_a_linux_machine_has_its_machine_id(monkeypatch, tmp_path, content, told):
    path = tmp_path / "machine-id"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(machine, "_MACHINE_ID_FILE", path)
    assert hardware_id() == ("0123456789abcdef0123456789abcdef" if told else "")
