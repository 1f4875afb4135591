"""What a person may type as an address, and that it is remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.address import DEFAULT_PORT, FILE_NAME, MAX_ADDRESSES, AddressBook, BadAddress, HostPort, parse_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("studio.local", "studio.local", DEFAULT_PORT),
        (" Studio.Local.:4000 ", "studio.local", 4000),
        ("mac-mini", "mac-mini", DEFAULT_PORT),
        ("studio.tail1234.ts.net", "studio.tail1234.ts.net", DEFAULT_PORT),
        ("192.168.1.20", "192.168.1.20", DEFAULT_PORT),
        ("192.168.1.20:1", "192.168.1.20", 1),
        ("fd00::1", "fd00::1", DEFAULT_PORT),
        ("FD00:0:0:0:0:0:0:1", "fd00::1", DEFAULT_PORT),
        ("[fd00::1]", "fd00::1", DEFAULT_PORT),
        ("[fd00::1]:65535", "fd00::1", 65535),
        ("fe80::1%en0", "fe80::1%en0", DEFAULT_PORT),
        ("[fe80::1%en0]:4000", "fe80::1%en0", 4000),
    ],
)
def test_what_a_person_may_type(text, host, port):
    assert parse_address(text) == HostPort(host, port)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ":", ":80", "host:", "host:0", "host:65536", "host:-1", "host:1a", "host:٣", "a b",
        "http://host", "host/x", "192.168.1.300", "1.2.3", "::g", "[::1", "[::1]x", "[::1]:", "[]", "fe80::1%",
        "fe80::1%a b", "-host", "host-", "a..b", "x" * 64, "x." * 130, "host\n", "ho\x00st", "user@host",
    ],
)  # fmt: skip
def test_what_is_no_address(text):
    if text == "host\n":  # ends of lines come with what is pasted
        assert parse_address(text).host == "host"
        return
    with pytest.raises(BadAddress, match=r"."):
        parse_address(text)


@given(st.text(max_size=40))
def test_anything_typed_is_an_address_or_refused(text):
    try:
        place = parse_address(text)
    except BadAddress:
        return
    assert parse_address(str(place)) == place


def test_addresses_are_remembered_until_they_are_removed(tmp_path):
    book = AddressBook(tmp_path)
    assert book.all() == ()
    one, two = HostPort("one.local"), HostPort("fe80::1%en0", 4000)
    for place in (one, two, one):
        book.add(place)
    assert AddressBook(tmp_path).all() == (two, one)
    book.remove(two)
    assert book.all() == (one,)


def test_the_oldest_goes_when_there_are_too_many(tmp_path):
    book = AddressBook(tmp_path)
    for port in range(1, MAX_ADDRESSES + 2):
        book.add(HostPort("host", port))
    assert [place.port for place in book.all()] == list(range(2, MAX_ADDRESSES + 2))


@pytest.mark.parametrize("damage", [b"{", b"[" * 10_000, b'{"addresses": [1]}', b" " * 70_000])
def test_a_damaged_file_is_kept_aside(tmp_path, damage):
    (tmp_path / FILE_NAME).write_bytes(damage)
    assert AddressBook(tmp_path).all() == ()
    assert (tmp_path / "addresses.damaged.json").read_bytes() == damage
