"""Which addresses are tried, and what a link is called."""

from __future__ import annotations

import pytest

from resources.interfaces import kinds_on_mac
from resources.links import (
    LOOPBACK,
    MAX_CANDIDATES,
    NetworkInterface,
    candidates,
    interface_with,
    link_name,
    speed_name,
)
from resources.mac.network import Interface, Port

WIFI = NetworkInterface("en0", "Wi-Fi", None, ("192.168.1.2", "fe80::a"))
ETHERNET = NetworkInterface("en7", "Ethernet", 10**9, ("192.168.1.3",))
FAST = NetworkInterface("en0", "Ethernet", 10**10, ("192.168.1.9", "fe80::c"))
THUNDERBOLT = NetworkInterface("bridge0", "Thunderbolt", None, ("169.254.7.1", "fe80::b"))


def test_ipv4_comes_as_it_is_and_link_local_ipv6_through_each_of_our_interfaces():
    assert candidates([WIFI, ETHERNET, THUNDERBOLT], [FAST, THUNDERBOLT]) == [
        "192.168.1.9", "169.254.7.1",
        "fe80::c%en0", "fe80::b%en0", "fe80::c%bridge0", "fe80::b%bridge0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "0.0.0.0", "::", "224.0.0.251", "ff02::fb", "studio.local", "", "2001:db8::1", "fe80::1%x"],
)
def test_what_cannot_be_another_node_is_not_dialled(address):
    assert candidates([WIFI], [NetworkInterface("en0", "Ethernet", None, (address,))]) == []


def test_agents_on_one_machine_are_joined_by_its_loopback():
    assert candidates([LOOPBACK], [LOOPBACK]) == ["127.0.0.1"]
    assert candidates([LOOPBACK], [NetworkInterface("lo", "this machine", None, ("10.0.0.1",))]) == []
    assert link_name(LOOPBACK, LOOPBACK) == "this machine"


def test_no_more_are_tried_than_wait_a_short_time():
    many = NetworkInterface("en0", "Ethernet", None, tuple(f"10.0.0.{number}" for number in range(100)))
    assert len(candidates([WIFI], [many])) == MAX_CANDIDATES


@pytest.mark.parametrize(
    ("near", "far", "name"),
    [
        (ETHERNET, ETHERNET, "Ethernet 1G"),
        (ETHERNET, FAST, "Ethernet 1G"),
        (WIFI, FAST, "Wi-Fi to Ethernet 10G"),
        (WIFI, WIFI, "Wi-Fi"),
        (THUNDERBOLT, THUNDERBOLT, "Thunderbolt"),
        (None, FAST, "Ethernet 10G"),
        (None, None, "network"),
    ],
)
def test_a_link_is_called_by_both_its_ends_and_the_slower_speed(near, far, name):
    assert link_name(near, far) == name


def test_speeds_as_they_stand_on_boxes():
    assert [speed_name(speed) for speed in (10**8, 10**9, 25 * 10**8, 10**10)] == ["100M", "1G", "2.5G", "10G"]


def test_an_interface_is_found_by_an_address_with_its_scope():
    assert interface_with([ETHERNET, WIFI], "fe80::a%en0") is WIFI
    assert interface_with([ETHERNET, WIFI], "10.0.0.1") is None


def test_a_mac_tells_kinds_by_its_hardware_ports_and_media_not_by_names():
    ports = (
        Port("WLAN", "en0"), Port("Thunderbolt 1", "en1"), Port("Thunderbolt 2", "en2"), Port("Ethernet", "en3"),
        Port("USB 10/100/1000 LAN", "en5"), Port("Thunderbolt Ethernet Slot 1", "en6"), Port("iPhone USB", "en8"),
    )  # fmt: skip
    interfaces = {
        "bridge0": Interface(members=("en1", "en2")),
        "en9": Interface(media="autoselect (2500Base-T <full-duplex>)", speed_bits_per_second=25 * 10**8),
    }
    names = ["en0", "en1", "en3", "en5", "en6", "en8", "en9", "bridge0"]
    kinds = kinds_on_mac(names, ports, interfaces)
    assert [kinds[name] for name in names] == [
        "Wi-Fi", "Thunderbolt", "Ethernet", "Ethernet", "Ethernet", "network", "Ethernet", "Thunderbolt",
    ]  # fmt: skip
