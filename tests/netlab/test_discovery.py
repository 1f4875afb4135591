"""Nodes that announce themselves and look for each other, over cables that are pulled and addresses that change."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

import pytest

from tests.netlab.watched import LIMIT_SECONDS, Watched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.netlab.lab import Host
    from tests.netlab.watched import Event

pytestmark = pytest.mark.matrix  # the same with whole agents is in test_agents.py


class Announcer(Watched):
    """A node on a host."""

    def __init__(self, host: Host, name: str | None = None, node_id: str | None = None) -> None:
        self.node_id = node_id or secrets.token_hex(32)
        super().__init__(host, "tests.netlab.announcer", self.node_id, name or host.name, "5001")

    def sees(self, *others: Announcer) -> float:
        """Wait until it sees them all; returns when that was."""
        return self.until(lambda events: set(in_sight(events)) >= {other.node_id for other in others})

    def misses(self, other: Announcer) -> float:
        """Wait until it has seen ``other`` leave."""
        return self.until(lambda events: ("removed", other.node_id) in told(events))


def told(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [(event["event"], event.get("node_id", "")) for event in events]


def in_sight(events: Sequence[Event]) -> dict[str, Event]:
    seen: dict[str, Event] = {}
    for event in events:
        if event["event"] in {"added", "updated"}:
            seen[event["node_id"]] = event
        elif event["event"] == "removed":
            seen.pop(event["node_id"], None)
    return seen


def mutually(*nodes: Announcer) -> float:
    """When the last of them saw all the others."""
    return max(node.sees(*nodes) for node in nodes)


def test_four_nodes_find_each_other_a_fifth_comes_late_and_one_says_goodbye(new_lab, took):
    lab = new_lab("studio", "mini", "air", "pro", "late")
    started = time.monotonic()
    nodes = [Announcer(host) for host in lab.hosts[:4]]
    assert took("four nodes start: all see all", mutually(*nodes) - started) < LIMIT_SECONDS
    late = Announcer(lab["late"])
    assert (
        took("a fifth starts: all see it, it sees all", mutually(*nodes, late) - late.started_seconds) < LIMIT_SECONDS
    )
    asked = time.monotonic()
    late.end()
    assert took("it quits: all know", max(node.misses(late) for node in nodes) - asked) < LIMIT_SECONDS
    assert {event["name"] for event in in_sight(nodes[0].events).values()} == {"studio", "mini", "air", "pro"}


def test_a_node_that_crashed_and_came_back_is_told_by_its_boot_id(new_lab, took):
    lab = new_lab("studio", "mini")
    studio, mini = Announcer(lab["studio"]), Announcer(lab["mini"])
    mutually(studio, mini)
    mini.kill()
    again = Announcer(lab["mini"], node_id=mini.node_id)

    def boots(events: Sequence[Event]) -> set[str]:
        return {event["boot_id"] for event in events if event.get("node_id") == mini.node_id}

    back = studio.until(lambda events: len(boots(events)) == 2)
    assert took("crashed and started again: the other knows", back - again.started_seconds) < LIMIT_SECONDS
    assert ("removed", mini.node_id) not in told(studio.events)


@pytest.mark.parametrize("with_addresses", [True, False], ids=["carrier alone", "addresses too"])
def test_a_node_that_starts_with_its_cable_out_is_found_when_it_is_put_in(new_lab, took, with_addresses):
    lab = new_lab("studio", "mini", ipv4=with_addresses)
    lab["mini"].pull()
    studio, mini = Announcer(lab["studio"]), Announcer(lab["mini"])
    studio.sees(studio)
    mini.until(lambda events: ("announced", "") in told(events))
    lab["mini"].push()
    pushed = time.monotonic()
    assert (
        took("started with the cable out, cable put in: both see both", mutually(studio, mini) - pushed) < LIMIT_SECONDS
    )


def test_both_find_each_other_when_only_the_switch_between_them_was_off(new_lab, took):
    """Neither loses its carrier, so nothing but asking again helps."""
    lab = new_lab("studio", "mini")
    lab.on_switch("link", "set", "lan0", "down")
    studio, mini = Announcer(lab["studio"]), Announcer(lab["mini"])
    for node in (studio, mini):
        node.until(lambda events: ("announced", "") in told(events))
    lab.on_switch("link", "set", "lan0", "up")
    on = time.monotonic()
    assert took("the switch goes on: both see both", mutually(studio, mini) - on) < LIMIT_SECONDS


def test_a_new_address_replaces_the_old_one(new_lab, took):
    lab = new_lab("studio", "mini")
    studio, mini = Announcer(lab["studio"]), Announcer(lab["mini"])
    mutually(studio, mini)
    lab["mini"].move("10.77.0.77")
    moved = time.monotonic()

    def only_new(events: Sequence[Event]) -> bool:
        addresses = in_sight(events).get(mini.node_id, {"addresses": ()})["addresses"]
        return "10.77.0.77" in addresses and lab["mini"].address() not in addresses

    assert (
        took("another address: the other has it, and the old one no more", studio.until(only_new) - moved)
        < LIMIT_SECONDS
    )


def test_two_nodes_with_the_same_name_stay_two(new_lab):
    lab = new_lab("studio", "mini")
    nodes = [Announcer(host, "MacBook Pro") for host in lab.hosts]
    mutually(*nodes)
    seen = in_sight(nodes[0].events)
    assert [seen[node.node_id]["name"] for node in nodes] == ["MacBook Pro", "MacBook Pro"]
    first, second = (set(seen[node.node_id]["addresses"]) for node in nodes)
    assert not first & second


def test_over_two_lans_a_second_cable_that_is_plugged_in_brings_a_second_address(new_lab, took):
    lab = new_lab("studio", "mini", lans=2)
    lab["mini"].unplug(1)
    studio, mini = Announcer(lab["studio"]), Announcer(lab["mini"])
    mutually(studio, mini)
    seen = in_sight(mini.events)[studio.node_id]["addresses"]
    assert {lab["studio"].address(0), lab["studio"].address(1)} <= set(seen)
    lab["mini"].plug(1)
    plugged = time.monotonic()
    both = {lab["mini"].address(0), lab["mini"].address(1)}
    known = studio.until(lambda events: set(in_sight(events).get(mini.node_id, {"addresses": ()})["addresses"]) >= both)
    assert took("a second cable: the other knows both addresses", known - plugged) < LIMIT_SECONDS


def test_nodes_without_ipv4_find_each_other_by_link_local_addresses(new_lab, took):
    lab = new_lab("studio", "mini", ipv4=False)
    studio, mini = Announcer(lab["studio"]), Announcer(lab["mini"])
    started = studio.started_seconds
    assert took("IPv6 link-local alone: both see both", mutually(studio, mini) - started) < LIMIT_SECONDS
    addresses = in_sight(studio.events)[mini.node_id]["addresses"]
    assert addresses
    assert all(address.startswith("fe80::") and "%" in address for address in addresses)
