"""The node's id stays, whatever happens to the process that made it."""

from __future__ import annotations

import json
import logging
import platform
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from discovery import identity
from discovery.announcement import is_node_id
from discovery.identity import FILE_NAME, load_identity, machine_name

if TYPE_CHECKING:
    from pathlib import Path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_identity_is_made_once_and_kept(tmp_path):
    folder = tmp_path / "Library" / "Pomona"
    first = load_identity(folder)
    assert is_node_id(first.node_id)
    assert load_identity(folder) == first
    assert load_identity(tmp_path / "other").node_id != first.node_id


def test_nobody_else_may_read_it(tmp_path):
    folder = tmp_path / "Pomona"
    folder.mkdir(mode=0o755)
    load_identity(folder)
    assert mode(folder) == 0o700
    assert mode(folder / FILE_NAME) == 0o600
    (folder / FILE_NAME).chmod(0o644)
    load_identity(folder)
    assert mode(folder / FILE_NAME) == 0o600


def test_nothing_else_is_left_in_the_folder(tmp_path):
    (tmp_path / "node.new").write_text("left by a crash")
    load_identity(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\x00",
        b'{"node_id": 7}',
        b'{"node_id": "abc"}',
        json.dumps({"node_id": "F" * 64}).encode(),
        json.dumps({"node_id": "f" * 64 + "\n"}).encode(),
        json.dumps({"node_id": "f" * 64, "name": "n" * 5000}).encode(),
        b"[" * 4000,
    ],
)
def test_a_damaged_file_is_moved_aside_and_replaced(tmp_path, caplog, damage):
    path = tmp_path / FILE_NAME
    path.write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        made = load_identity(tmp_path)
    assert is_node_id(made.node_id)
    assert load_identity(tmp_path) == made
    assert (tmp_path / "node.damaged.json").read_bytes() == damage
    assert "is damaged" in caplog.text


def test_a_file_that_cannot_be_read_is_no_reason_for_a_new_id(tmp_path):
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(OSError, match="directory"):
        load_identity(tmp_path)


def test_all_who_ask_at_once_get_the_same(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(load_identity, [tmp_path / "Pomona"] * 32))
    assert len(made) == 1


def test_a_name_in_the_file_wins_over_the_machine(tmp_path):
    node_id = load_identity(tmp_path).node_id
    (tmp_path / FILE_NAME).write_text(json.dumps({"node_id": node_id, "name": "The big one"}))
    assert load_identity(tmp_path).name == "The big one"
    (tmp_path / FILE_NAME).write_text(json.dumps({"node_id": node_id, "name": "\n"}))
    assert load_identity(tmp_path).name == machine_name()


def test_a_mac_has_its_computer_name(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(identity, "_computer_name", lambda: "Mia’s MacBook Pro\n")
    assert machine_name() == "Mia’s MacBook Pro"


@pytest.mark.parametrize(
    ("host", "name"), [("studio.local", "studio"), ("studio", "studio"), ("", "Unnamed"), ("\x07", "Unnamed")]
)
def test_other_machines_have_their_host_name(monkeypatch, host, name):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "node", lambda: host)
    assert machine_name() == name


def test_a_mac_without_scutil_still_has_a_name(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(platform, "node", lambda: "mini.local")
    assert machine_name() == "mini"
