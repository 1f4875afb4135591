"""Links are remembered, and so is what a person chose."""

from __future__ import annotations

import pytest

from resources.links import NetworkInterface
from runtime.cluster.link_book import FILE_NAME, LinkBook, planning_links
from runtime.cluster.links import Link, LinkEnd, NodePair
from runtime.planning.places import UNREACHABLE
from runtime.planning.places import Link as PlanLink

A, B, C = "a" * 64, "b" * 64, "c" * 64
INTERFACES = ((NetworkInterface("en0", "Ethernet", 10**9, ("10.0.0.1",)),),) * 2


def link(number: int, rtt_seconds: float) -> Link:
    ends = LinkEnd(A, "en0", f"10.{number}.0.1"), LinkEnd(B, "en0", f"10.{number}.0.2")
    return Link("Ethernet 1G", ends, rtt_seconds, 1e8)


PAIR = NodePair((A, B), INTERFACES, (link(0, 1e-3), link(1, 1e-4)))


def test_what_was_measured_is_known_to_the_next_process(tmp_path):
    LinkBook(tmp_path).keep(PAIR)
    assert LinkBook(tmp_path).get(B, A) == LinkBook(tmp_path).get(A, B) == PAIR
    assert LinkBook(tmp_path).get(A, C) is None


def test_a_choice_stays_when_the_links_are_measured_again(tmp_path):
    book = LinkBook(tmp_path)
    book.keep(PAIR)
    book.want(B, A, PAIR.links[0].addresses)
    kept = book.keep(NodePair((A, B), INTERFACES, (link(0, 2e-3), link(1, 3e-4))))
    assert kept.chosen == link(0, 2e-3)
    book.want(A, B, None)
    known = LinkBook(tmp_path).get(A, B)
    assert known is not None
    assert known.chosen == link(1, 3e-4)


def test_there_is_no_choice_between_nodes_that_were_never_measured(tmp_path):
    with pytest.raises(KeyError):
        LinkBook(tmp_path).want(A, B, None)


def test_a_plan_counts_with_the_link_that_a_job_would_use_and_with_none_where_there_is_none(tmp_path):
    book = LinkBook(tmp_path)
    for pair in (
        PAIR,
        NodePair((A, C), INTERFACES, trouble="nothing answers"),
        NodePair((B, C), INTERFACES, trouble="a model runs", measured=False),
    ):
        book.keep(pair)
    assert planning_links(tmp_path, (A, B, C)) == (
        PlanLink(A, B, link(1, 1e-4).speed),
        PlanLink(A, C, UNREACHABLE),
    )
    book.want(A, B, PAIR.links[0].addresses)
    assert planning_links(tmp_path, (B, A)) == (PlanLink(A, B, link(0, 1e-3).speed),)


@pytest.mark.parametrize("content", [b"", b"{", b'{"pairs": [{}]}', b"[" * 100_000, bytes(5 << 20)])
def test_a_damaged_file_is_put_aside_and_links_are_measured_again(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)
    book = LinkBook(tmp_path)
    assert book.get(A, B) is None
    book.keep(PAIR)
    assert LinkBook(tmp_path).get(A, B) == PAIR
    assert (tmp_path / "links.damaged.json").exists()
