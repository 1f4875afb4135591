"""What is believed of an announcement, and what is not."""

from __future__ import annotations

import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.announcement import (
    MAX_ADDRESSES,
    MAX_NAME_BYTES,
    BadAnnouncement,
    Sighting,
    clean_name,
    decode_announcement,
    encode_txt,
    host_name,
    instance_name,
    is_instance_name,
    is_node_id,
)

NODE_ID = "0123456789abcdef" * 4
INSTANCE = instance_name(NODE_ID)
ADDRESSES = ["127.0.0.1"]


def record(**changes: bytes | None) -> dict[bytes, bytes | None]:
    """A good TXT record with some of its values replaced."""
    good = encode_txt(NODE_ID, "Studio", "00ff00ff00ff00ff", 5000)
    properties: dict[bytes, bytes | None] = {key.encode(): value.encode() for key, value in good.items()}
    return properties | {key.encode(): value for key, value in changes.items()}


def test_what_an_agent_announces_is_what_others_read():
    sighting = decode_announcement(INSTANCE, record(), ["10.0.0.7", "fe80::1%en0"])
    assert sighting == Sighting(NODE_ID, "Studio", "00ff00ff00ff00ff", ("10.0.0.7", "fe80::1%en0"), 5000)


def test_instance_and_host_carry_the_short_id():
    assert INSTANCE == "0123456789ab._pomona._tcp.local."
    assert host_name(NODE_ID) == "pomona-0123456789ab.local."


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"v": None}, "no v"),
        ({"v": b"2"}, "format version"),
        ({"v": b"1" * 9}, "9 bytes"),
        ({"id": None}, "no id"),
        ({"id": NODE_ID[:-1].encode()}, "id"),
        ({"id": NODE_ID.upper().encode()}, "id"),
        ({"id": b"g" * 64}, "id"),
        ({"id": NODE_ID.encode() + b"\n"}, "65 bytes"),
        ({"id": b"f" * 64}, "under another node's name"),
        ({"name": None}, "no name"),
        ({"name": b""}, "no name"),
        ({"name": b"\x1b\x07"}, "no name"),
        ({"name": b"\xff\xfe"}, "UTF-8"),
        ({"name": b"n" * (MAX_NAME_BYTES + 1)}, "64 bytes"),
        ({"boot": None}, "no boot"),
        ({"boot": b"now"}, "boot"),
        ({"port": None}, "no port"),
        ({"port": b"0"}, "port"),
        ({"port": b"-1"}, "port"),
        ({"port": b"65536"}, "port 65536"),
        ({"port": b"080"}, "port"),
        ({"port": "٥٠٠٠".encode()}, "8 bytes"),
        ({"port": b"5\n"}, "port"),
    ],
)
def test_an_announcement_with_a_wrong_part_is_refused(changes, complaint):
    with pytest.raises(BadAnnouncement, match=complaint):
        decode_announcement(INSTANCE, record(**changes), ADDRESSES)


def test_an_announcement_without_addresses_is_refused():
    with pytest.raises(BadAnnouncement, match="no address"):
        decode_announcement(INSTANCE, record(), [])


def test_a_flood_of_addresses_is_cut():
    addresses = [f"10.0.0.{last}" for last in range(100)]
    assert decode_announcement(INSTANCE, record(), addresses).addresses == tuple(addresses[:MAX_ADDRESSES])


@given(st.dictionaries(st.sampled_from([b"v", b"id", b"name", b"boot", b"port"]), st.none() | st.binary(max_size=300)))
def test_any_record_is_read_or_refused(changes):
    try:
        sighting = decode_announcement(INSTANCE, record() | changes, ADDRESSES)
    except BadAnnouncement:
        return
    assert is_node_id(sighting.node_id)
    assert 0 < sighting.port < 65536
    assert sighting.name.isprintable()


@given(st.text(st.characters(), max_size=200))
def test_a_clean_name_prints_on_one_line_and_fits(text):
    name = clean_name(text)
    assert name.isprintable()
    assert len(name.encode()) <= MAX_NAME_BYTES
    assert clean_name(name) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Mia’s MacBook Pro", "Mia’s MacBook Pro"),
        ("  two\nlines\t", "two lines"),
        ("a\u202eb", "a b"),
        ("é" * 40, "é" * 31),
        ("\ud800", ""),
    ],
)
def test_names_are_cleaned(text, name):
    assert clean_name(text) == name


def test_only_short_hex_names_of_our_type_are_instances():
    assert is_instance_name(instance_name(secrets.token_hex(32)))
    for name in ("Studio._pomona._tcp.local.", "0123456789ab._http._tcp.local.", INSTANCE + "x", "x" + INSTANCE):
        assert not is_instance_name(name)
