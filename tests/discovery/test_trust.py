"""Whom a node trusts: what pairing, introducing and removing do, and that every process sees it."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from discovery.address import HostPort
from discovery.certificate import new_certificate
from discovery.home import Home
from discovery.tls import fingerprint_of_pem
from discovery.trust import FILE_NAME, MAX_NODES, Role, TrustStore

CONTROLLER, OTHER = "c" * 64, "d" * 64


def certificate() -> str:
    return new_certificate()[1].decode()


@pytest.fixture
def store(tmp_path) -> TrustStore:
    return TrustStore(tmp_path)


@pytest.fixture
def pem() -> str:
    return certificate()


def test_nobody_is_trusted_at_first(store, pem):
    assert store.nodes == ()
    assert store.get(fingerprint_of_pem(pem)) is None


def test_a_paired_node_is_a_controller_and_known_to_every_process(store, tmp_path, pem):
    other = TrustStore(tmp_path)
    assert not other.nodes
    node = store.pair(pem, " Mia’s\nMac ", [HostPort("192.0.2.1", 4000)])
    assert (node.name, node.role) == ("Mia’s Mac", Role.CONTROLLER)
    assert other.get(node.node_id) == node
    assert store.paired == (node,)


def test_the_file_is_its_owners_alone(store, tmp_path, pem):
    store.pair(pem, "Mac")
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_removed_node_is_forgotten_everywhere_with_those_that_it_introduced(store, tmp_path, pem):
    other = TrustStore(tmp_path)
    node, peer = store.pair(pem, "Mac"), certificate()
    store.introduce(node.node_id, [(peer, "mini")])
    assert [one.role for one in other.nodes] == [Role.CONTROLLER, Role.PEER]
    assert other.remove(node.node_id)
    assert store.nodes == ()
    assert not store.remove(node.node_id)


def test_an_introduction_replaces_the_one_before_and_no_other_controllers(store):
    first, second, third = certificate(), certificate(), certificate()
    store.introduce(CONTROLLER, [(first, "first"), (second, "second")])
    store.introduce(OTHER, [(third, "third")])
    store.introduce(CONTROLLER, [(second, "second")])
    assert {node.name for node in store.nodes} == {"second", "third"}


def test_an_introduction_neither_lowers_nor_brings_back(store, pem):
    paired, removed = store.pair(pem, "paired"), store.pair(certificate(), "removed")
    store.remove(removed.node_id)
    store.introduce(CONTROLLER, [(pem, "paired"), (removed.certificate, "removed")])
    assert store.nodes == (paired,)
    store.pair(removed.certificate, "removed")
    assert store.get(removed.node_id).role is Role.CONTROLLER


def test_pairing_raises_a_peer(store, pem):
    store.introduce(CONTROLLER, [(pem, "mini")])
    store.pair(pem, "mini")
    assert [node.role for node in store.nodes] == [Role.CONTROLLER]


def test_addresses_are_remembered_newest_first(store, pem):
    node = store.pair(pem, "Mac")
    for port in (1, 2, 1):
        store.remember_address(node.node_id, HostPort("192.0.2.1", port))
    assert [place.port for place in store.get(node.node_id).addresses] == [1, 2]
    store.remember_address("e" * 64, HostPort("192.0.2.1", 1))
    assert len(store.nodes) == 1


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[" * 100_000, b"\xff", b'{"nodes": [{"node_id": "x"}]}', b" " * (2 << 20)],
)
def test_a_damaged_file_trusts_nobody_and_is_kept_aside(store, tmp_path, pem, damage):
    store.pair(pem, "Mac")
    (tmp_path / FILE_NAME).write_bytes(damage)
    assert TrustStore(tmp_path).nodes == ()
    assert (tmp_path / "trust.damaged.json").read_bytes() == damage
    assert TrustStore(tmp_path).pair(pem, "Mac").role is Role.CONTROLLER


def test_an_id_that_is_not_its_certificates_counts_as_damage(store, tmp_path, pem):
    store.pair(pem, "Mac")
    content = json.loads((tmp_path / FILE_NAME).read_bytes())
    content["nodes"][0]["node_id"] = "a" * 64
    (tmp_path / FILE_NAME).write_text(json.dumps(content))
    assert TrustStore(tmp_path).nodes == ()


def test_there_is_an_end_to_how_many_are_trusted(store):
    pems = [certificate() for _ in range(MAX_NODES + 1)]
    with pytest.raises(ValueError, match="more than"):
        store.introduce(CONTROLLER, [(pem, "peer") for pem in pems])
    store.introduce(CONTROLLER, [(pem, "peer") for pem in pems[:-1]])
    with pytest.raises(ValueError, match="more than"):
        store.pair(pems[-1], "one more")


def test_what_is_no_certificate_is_refused(store):
    with pytest.raises(ValueError, match=r"."):
        store.pair("no certificate", "Mac")
    assert store.nodes == ()


def test_no_change_is_lost_when_many_write_at_once(tmp_path):
    pems = [certificate() for _ in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda pem: TrustStore(tmp_path).pair(pem, "Mac"), pems))
    assert {node.certificate for node in TrustStore(tmp_path).nodes} == set(pems)


def test_a_home_knows_itself_as_the_owner(tmp_path, pem):
    home = Home(tmp_path)
    own = home.identity
    assert home.role_of(own.node_id) is Role.OWNER
    assert home.certificate_of(own.node_id) == own.certificate_pem
    assert home.role_of(None) is Role.STRANGER
    assert home.role_of("a" * 64) is Role.STRANGER
    assert home.certificate_of("a" * 64) is None
    home.trust.pair(pem, "Mac")
    assert home.certificate_of(fingerprint_of_pem(pem)) == pem
    assert home.context_for(pem) is home.context_for(pem)
