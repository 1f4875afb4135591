"""Which interfaces lead to other machines, and by which of their addresses."""

from __future__ import annotations

import ipaddress

import pytest

from discovery.interfaces import (
    LOOPBACK,
    LanInterface,
    lan_addresses,
    lan_interfaces,
    leads_to_others,
    loopback_interfaces,
    usable,
)

UP_AND_CONNECTED = 0x8863
"""Of a Mac's Ethernet port: up, broadcast, running, simplex, multicast."""


@pytest.mark.parametrize("name", ["en0", "en12", "bridge0", "eth0", "enp3s0", "wlan0"])
def test_ports_lead_to_others(name):
    assert leads_to_others(name, UP_AND_CONNECTED)


@pytest.mark.parametrize(
    "name", ["lo0", "awdl0", "llw0", "utun4", "anpi1", "ap1", "vmenet0", "bridge100", "docker0", "veth1a", "tailscale0"]
)
def test_what_a_machine_keeps_for_itself_does_not(name):
    assert not leads_to_others(name, UP_AND_CONNECTED)


@pytest.mark.parametrize(
    ("state", "flags"),
    [("down", 0x8862), ("without a cable", 0x1003), ("loopback", 0x49), ("a tunnel", 0x8051), ("gone", 0)],
)
def test_flags_that_mean_no_network(state, flags):
    assert not leads_to_others("en5", flags), state


def test_addresses_that_others_reach_come_with_ipv4_first():
    listed = ["fe80::1", "fd00::2", "2001:db8::3", "127.0.0.1", "::1", "192.168.1.2", "169.254.7.7"]
    assert list(usable(listed)) == ["192.168.1.2", "169.254.7.7", "fe80::1"]


def test_zeroconf_is_given_one_ipv4_address_and_the_index_for_ipv6():
    assert LanInterface("en0", 4, ("10.0.0.1", "10.0.0.2", "fe80::1")).multicast == ("10.0.0.1", 4)
    assert LanInterface("en0", 4, ("fe80::1",)).multicast == (4,)
    assert loopback_interfaces()[0].multicast == (LOOPBACK,)


def test_this_machine_lists_no_loopback():
    for interface in lan_interfaces():
        for address in interface.addresses:
            assert not ipaddress.ip_address(address).is_loopback
    assert set(lan_addresses()) <= {address for interface in lan_interfaces() for address in interface.addresses}
