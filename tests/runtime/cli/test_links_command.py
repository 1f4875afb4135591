"""What ``pomona links`` says of pairs."""

from __future__ import annotations

import msgspec

from resources.links import NetworkInterface
from resources.rdma_verdict import RdmaVerdict
from runtime.cli.links import rate_words, report_lines, report_of
from runtime.cluster.links import Link, LinkEnd, NodePair

A, B = "a" * 64, "b" * 64
INTERFACES = ((NetworkInterface("en0", "Ethernet", 10**9, ("10.0.0.1",)),),) * 2
NAMES = {A: "Studio", B: "mini"}
ETHERNET = Link("Ethernet 1G", (LinkEnd(A, "en0", "10.0.0.1"), LinkEnd(B, "en0", "10.0.0.2")), 6e-4, 1.17e8)
THUNDERBOLT = Link("Thunderbolt", (LinkEnd(A, "en1", "169.254.1.1"), LinkEnd(B, "en2", "169.254.1.2")), 3.5e-4, 2.4e9)


def test_the_link_in_use_is_marked_with_the_reason():
    pair = NodePair((A, B), INTERFACES, (ETHERNET, THUNDERBOLT))
    assert report_lines(report_of(pair, NAMES)) == [
        "Studio and mini",
        "  → Thunderbolt     0.35 ms   2.4 GB/s  169.254.1.1 to 169.254.1.2  used: the fastest",
        "    Ethernet 1G     0.60 ms   117 MB/s  10.0.0.1 to 10.0.0.2",
    ]
    chosen = msgspec.structs.replace(pair, wanted=ETHERNET.addresses)
    assert report_lines(report_of(chosen, NAMES))[2].startswith("  → Ethernet 1G")
    assert report_lines(report_of(chosen, NAMES))[2].endswith("used: your choice")


def test_a_cable_says_whether_rdma_works_over_it_and_what_is_missing():
    pair = NodePair((A, B), INTERFACES, (THUNDERBOLT,))
    off = RdmaVerdict(possible=False, reasons=("RDMA is off on mini.",))
    assert report_lines(report_of(pair, NAMES, off))[2:] == ["  No RDMA:", "    RDMA is off on mini."]
    works = RdmaVerdict(possible=True, reasons=())
    assert report_lines(report_of(pair, NAMES, works))[2:] == ["  RDMA works over the cable"]


def test_a_pair_without_a_link_says_why():
    pair = NodePair((A, B), INTERFACES, trouble="mini does not reach Studio (10.0.0.1: nothing answers).")
    assert report_lines(report_of(pair, NAMES)) == [
        "Studio and mini",
        "  no link: mini does not reach Studio (10.0.0.1: nothing answers).",
    ]


def test_rates_are_in_round_numbers():
    assert [rate_words(rate) for rate in (11.9e6, 117e6, 1.2e9)] == ["12 MB/s", "117 MB/s", "1.2 GB/s"]
