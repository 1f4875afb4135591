"""What two nodes measured becomes links, and one of them is chosen for both."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from resources.links import NetworkInterface
from runtime.agent.link_messages import DeadAddress, MeasuredLink, MeasuredLinks
from runtime.cluster.links import Link, LinkEnd, NodePair, fastest, joined, pair_ids, why_none

A, B = "a" * 64, "b" * 64
INTERFACES = (
    (
        NetworkInterface("en0", "Ethernet", 10**9, ("10.0.0.1", "fe80::1")),
        NetworkInterface("en1", "Wi-Fi", None, ("10.1.0.1",)),
    ),
    (
        NetworkInterface("en4", "Ethernet", 10**10, ("10.0.0.2", "fe80::2")),
        NetworkInterface("en0", "Wi-Fi", None, ("10.1.0.2",)),
    ),
)


def link(number: int, rtt_seconds: float, bytes_per_second: float) -> Link:
    ends = LinkEnd(A, "en0", f"10.{number}.0.1"), LinkEnd(B, "en0", f"10.{number}.0.2")
    return Link("Ethernet 1G", ends, rtt_seconds, bytes_per_second)


def test_a_link_is_what_both_measured_with_the_slower_of_their_numbers():
    there = MeasuredLinks(
        (MeasuredLink("10.0.0.1", "10.0.0.2", 1e-3, 5e8), MeasuredLink("10.1.0.1", "10.1.0.2", 1e-2, 5e7))
    )
    back = MeasuredLinks((MeasuredLink("10.0.0.2", "10.0.0.1", 2e-3, 9e8),))
    (found,) = joined((A, B), INTERFACES, there, back)
    assert found == Link("Ethernet 1G", (LinkEnd(A, "en0", "10.0.0.1"), LinkEnd(B, "en4", "10.0.0.2")), 2e-3, 5e8)
    assert str(found) == "Ethernet 1G, 2.0 ms"
    assert found.address_of(B) == "10.0.0.2"


def test_link_local_addresses_keep_the_scope_that_the_dialling_end_gave_them():
    there = MeasuredLinks((MeasuredLink("fe80::1", "fe80::2%en0", 1e-3, 5e8),))
    back = MeasuredLinks((MeasuredLink("fe80::2", "fe80::1%en4", 1e-3, 5e8),))
    (found,) = joined((A, B), INTERFACES, there, back)
    assert found.addresses == ("fe80::1%en4", "fe80::2%en0")


def test_a_way_that_goes_out_by_one_cable_and_back_by_another_is_no_link():
    there = MeasuredLinks((MeasuredLink("10.0.0.1", "10.0.0.2", 1e-3, 5e8),))
    back = MeasuredLinks((MeasuredLink("10.1.0.2", "10.0.0.1", 1e-3, 5e8),))
    assert joined((A, B), INTERFACES, there, back) == ()
    assert "no address in both directions" in why_none(("Studio", "mini"), there, back)


def test_a_person_reads_who_does_not_reach_whom_and_why():
    there = MeasuredLinks((MeasuredLink("10.0.0.1", "10.0.0.2", 1e-3, 5e8),))
    back = MeasuredLinks((), (DeadAddress("10.0.0.1", "nothing answers"),))
    assert why_none(("Studio", "mini"), there, back) == "mini does not reach Studio (10.0.0.1: nothing answers)."


def test_the_fastest_is_chosen_by_what_a_hop_takes():
    near_but_narrow, far_but_wide, both = link(0, 1e-4, 1e7), link(1, 2e-2, 1e9), link(2, 3e-4, 1e8)
    assert fastest([near_but_narrow, far_but_wide, both]) == both
    assert fastest([]) is None


def test_a_persons_choice_holds_while_that_link_is_there():
    slow, fast = link(0, 1e-2, 1e7), link(1, 1e-4, 1e9)
    pair = NodePair((A, B), INTERFACES, (slow, fast))
    assert (pair.chosen, pair.chosen_by) == (fast, "speed")
    wanted = msgspec.structs.replace(pair, wanted=slow.addresses)
    assert (wanted.chosen, wanted.chosen_by) == (slow, "person")
    gone = msgspec.structs.replace(wanted, links=(fast,))
    assert (gone.chosen, gone.chosen_by) == (fast, "speed")


@given(st.permutations([A, B]), st.permutations(range(4)))
def test_whoever_asks_and_in_whatever_order_both_ends_get_the_same_pair(ids, order):
    ways = [MeasuredLink(f"10.{lan}.0.1", f"10.{lan}.0.2", 1e-3 * (lan + 1), 1e8) for lan in order]
    turned = [MeasuredLink(way.address, way.own_address, way.rtt_seconds, 1e8) for way in reversed(ways)]
    links = joined(pair_ids(*ids), INTERFACES, MeasuredLinks(tuple(ways)), MeasuredLinks(tuple(turned)))
    chosen = fastest(links)
    assert chosen is not None
    assert chosen.addresses == ("10.0.0.1", "10.0.0.2")
