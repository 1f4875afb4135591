"""The node's key and id stay, whatever happens to the process that made them, and stay with their machine."""

from __future__ import annotations

import json
import logging
import multiprocessing
import stat
from typing import TYPE_CHECKING

import pytest

from discovery import identity
from discovery.announcement import is_node_id
from discovery.identity import CERTIFICATE, KEY, RECORD, load_identity, temporary_identity
from discovery.machine import machine_name
from discovery.tls import fingerprint_of_pem

if TYPE_CHECKING:
    from pathlib import Path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def machine(monkeypatch):
    """Puts a disk into another machine: call it with that machine's hardware id."""

    def move_to(hardware_id: str) -> None:
        monkeypatch.setattr(identity, "hardware_id", lambda: hardware_id)

    return move_to


def test_an_identity_is_made_once_and_kept(tmp_path):
    folder = tmp_path / "Library" / "Pomona"
    first = load_identity(folder)
    assert is_node_id(first.node_id)
    assert load_identity(folder) == first
    assert load_identity(tmp_path / "other").node_id != first.node_id


def test_the_id_is_the_fingerprint_of_the_certificate_in_the_file(tmp_path):
    made = load_identity(tmp_path)
    assert made.certificate_path.read_text() == made.certificate_pem
    assert fingerprint_of_pem(made.certificate_pem) == made.node_id


def test_nobody_else_may_read_it(tmp_path):
    folder = tmp_path / "Pomona"
    folder.mkdir(mode=0o755)
    load_identity(folder)
    assert mode(folder) == 0o700
    assert {name: mode(folder / name) for name in (KEY, RECORD)} == {KEY: 0o600, RECORD: 0o600}
    folder.chmod(0o755)
    (folder / KEY).chmod(0o644)
    load_identity(folder)
    assert mode(folder) == 0o700
    assert mode(folder / KEY) == 0o600


def test_nothing_else_is_left_in_the_folder(tmp_path):
    (tmp_path / "key.new").write_text("left by a crash")
    load_identity(tmp_path)
    assert names(tmp_path) == {KEY, CERTIFICATE, RECORD}


@pytest.mark.parametrize("name", [KEY, CERTIFICATE])
@pytest.mark.parametrize(
    "damage", [b"", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"x" * 100_000]
)
def test_a_damaged_key_or_certificate_is_moved_aside_and_replaced(tmp_path, caplog, name, damage):
    old = load_identity(tmp_path)
    (tmp_path / name).write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        made = load_identity(tmp_path)
    assert made.node_id != old.node_id
    assert load_identity(tmp_path) == made
    assert (tmp_path / name).with_suffix(".damaged.pem").read_bytes() == damage
    assert "cannot be used" in caplog.text


def test_a_key_that_belongs_to_another_certificate_counts_as_damaged(tmp_path):
    old = load_identity(tmp_path / "one")
    other = load_identity(tmp_path / "two")
    old.key_path.write_bytes(other.key_path.read_bytes())
    assert load_identity(tmp_path / "one").node_id not in {old.node_id, other.node_id}


@pytest.mark.parametrize("left", [[KEY], [KEY, RECORD], [CERTIFICATE], []])
def test_what_a_crash_left_half_made_is_made_again(tmp_path, left):
    old = load_identity(tmp_path)
    for name in names(tmp_path) - set(left):
        (tmp_path / name).unlink()
    made = load_identity(tmp_path)
    assert made.node_id != old.node_id
    assert load_identity(tmp_path) == made


def test_a_file_that_cannot_be_read_is_no_reason_for_a_new_id(tmp_path):
    (tmp_path / CERTIFICATE).mkdir()
    with pytest.raises(OSError, match="directory"):
        load_identity(tmp_path)


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"\xff\x00", b'{"name": 7}', b"[" * 4000, b'{"name": "' + b"n" * 20_000 + b'"}']
)
def test_a_damaged_record_costs_the_chosen_name_and_not_the_id(tmp_path, damage):
    node_id = load_identity(tmp_path).node_id
    (tmp_path / RECORD).write_bytes(damage)
    assert load_identity(tmp_path).node_id == node_id
    assert load_identity(tmp_path).name == machine_name()
    assert (tmp_path / "node.damaged.json").read_bytes() == damage


def test_a_copied_disk_makes_a_new_identity_and_not_a_twin(tmp_path, machine, caplog):
    machine("first")
    old = load_identity(tmp_path)
    machine("second")
    with caplog.at_level(logging.WARNING):
        copied = load_identity(tmp_path)
    assert copied.node_id != old.node_id
    assert "another machine" in caplog.text
    assert load_identity(tmp_path) == copied


def test_a_machine_without_a_hardware_id_keeps_what_it_has_and_is_tied_later(tmp_path, machine):
    machine("")
    old = load_identity(tmp_path)
    machine("first")
    assert load_identity(tmp_path) == old
    machine("")
    assert load_identity(tmp_path) == old
    machine("second")
    assert load_identity(tmp_path) != old


def make(folder: Path) -> str:
    return load_identity(folder).node_id


def test_all_processes_that_ask_at_once_get_the_same(tmp_path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        made = set(pool.map(make, [tmp_path / "Pomona"] * 16, chunksize=1))
    assert len(made) == 1


def test_a_name_in_the_record_wins_over_the_machine(tmp_path):
    node_id = load_identity(tmp_path).node_id
    (tmp_path / RECORD).write_text(json.dumps({"name": "The big one"}))
    assert load_identity(tmp_path).name == "The big one"
    assert load_identity(tmp_path).node_id == node_id
    (tmp_path / RECORD).write_text(json.dumps({"name": "\n"}))
    assert load_identity(tmp_path).name == machine_name()


def test_a_temporary_identity_leaves_nothing():
    with temporary_identity() as first, temporary_identity() as second:
        assert first.key_path.exists()
        assert first.node_id != second.node_id
    assert not first.key_path.parent.exists()
