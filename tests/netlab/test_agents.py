"""Real agents on hosts of their own: who is listed, and how soon after something happens."""

from __future__ import annotations

import signal
import time

import pytest

from runtime.cluster.node_watcher import USUAL_TIMES
from tests.netlab.agents import Agent, Onlooker, pair, said
from tests.netlab.watched import LIMIT_SECONDS, PROMISED_SECONDS


def test_nodes_come_and_go_in_every_way_and_each_list_follows(new_lab, took):
    lab = new_lab("studio", "mini", "air", "pro", "late")
    agents = {host.name: Agent(host) for host in lab.hosts[:4]}
    studio, mini = Onlooker(lab["studio"]), Onlooker(lab["mini"])
    both = (studio, mini)
    started = min(agent.started_seconds for agent in agents.values())
    shown = max(onlooker.shows(*agents.values()) for onlooker in both)
    assert took("four agents start: each list has all four", shown - started) < LIMIT_SECONDS

    pair(lab["studio"], agents["air"])
    late = Agent(lab["late"])
    shown = max(onlooker.shows(late) for onlooker in both)
    assert took("a fifth agent starts: it is listed", shown - late.started_seconds) < LIMIT_SECONDS

    asked = time.monotonic()
    late.end()
    gone = max(onlooker.misses(late, after=asked) for onlooker in both)
    assert took("it quits: it is listed no more", gone - asked) < LIMIT_SECONDS

    killed = time.monotonic()
    agents["air"].kill()
    gone = max(onlooker.misses(agents["air"], after=killed) for onlooker in both)
    assert took("kill -9: it is listed no more", gone - killed) < LIMIT_SECONDS

    again = Agent(lab["air"])
    shown = max(onlooker.returns(again, after=killed) for onlooker in both)
    assert took("it starts again: it is listed", shown - again.started_seconds) < LIMIT_SECONDS
    assert studio.now["usable"][again.node_id][0] == "air"  # still paired

    pulled = time.monotonic()
    lab["air"].pull()
    gone = max(onlooker.misses(again, after=pulled) for onlooker in both)
    assert took("its cable is pulled: it is listed no more", gone - pulled) < LIMIT_SECONDS
    pushed = time.monotonic()
    lab["air"].push()
    shown = max(onlooker.returns(again, after=pushed) for onlooker in both)
    assert took("its cable is put in: it is listed", shown - pushed) < LIMIT_SECONDS

    moved = time.monotonic()
    lab["pro"].move("10.77.0.77")
    there = max(onlooker.lists_at(agents["pro"], "10.77.0.77") for onlooker in both)
    assert took("its address changes: it is listed at the new one", there - moved) < LIMIT_SECONDS


def test_agents_with_one_name_stay_two_and_one_without_a_cable_is_found_when_it_has_one(new_lab, took):
    lab = new_lab("studio", "mini")
    lab["mini"].pull()
    agents = [Agent(host, "MacBook Pro") for host in lab.hosts]
    onlookers = [Onlooker(host) for host in lab.hosts]
    for onlooker, agent in zip(onlookers, agents, strict=True):
        onlooker.shows(agent)
    pushed = time.monotonic()
    lab["mini"].push()
    shown = max(onlooker.shows(*agents) for onlooker in onlookers)
    assert took("started with the cable out, cable put in: each lists both", shown - pushed) < LIMIT_SECONDS
    assert agents[0].node_id != agents[1].node_id
    assert {name for name, _host in onlookers[0].now["unpaired"].values()} == {"MacBook Pro"}


def test_of_two_lans_each_is_enough_and_the_other_takes_over(new_lab, took):
    lab = new_lab("studio", "mini", "air", lans=2)
    lab["mini"].unplug(1)
    lab["air"].unplug(0)
    agents = {host.name: Agent(host) for host in lab.hosts}
    studio, mini = Onlooker(lab["studio"]), Onlooker(lab["mini"])
    started = min(agent.started_seconds for agent in agents.values())
    assert took("two LANs: the node on both lists all", studio.shows(*agents.values()) - started) < LIMIT_SECONDS
    mini.shows(agents["studio"])
    assert agents["air"].node_id not in mini.now["unpaired"]

    lab["air"].plug(0)
    plugged = time.monotonic()
    assert took("a second cable: the other LAN lists it", mini.shows(agents["air"]) - plugged) < LIMIT_SECONDS
    lab["air"].pull(1)
    assert studio.lists_at(agents["air"], lab["air"].address(0)) - plugged < 2 * LIMIT_SECONDS


@pytest.mark.matrix
def test_without_ipv4_agents_are_listed_paired_and_measured(new_lab, took):
    lab = new_lab("studio", "mini", ipv4=False)
    studio, mini = (Agent(host) for host in lab.hosts)
    onlooker = Onlooker(lab["studio"])
    started = min(studio.started_seconds, mini.started_seconds)
    assert took("IPv6 link-local alone: both are listed", onlooker.shows(studio, mini) - started) < LIMIT_SECONDS
    pair(lab["studio"], mini)
    assert "fe80::" in said(lab["studio"], "links")


def test_an_agent_that_does_not_get_to_run_is_busy_and_not_gone(new_lab):
    """Its kernel answers for it; a heartbeat of two seconds would have given it up."""
    lab = new_lab("studio", "mini")
    mini, onlooker = Agent(lab["mini"]), Onlooker(lab["studio"])
    onlooker.shows(mini)
    mini.process.send_signal(signal.SIGSTOP)
    onlooker.stays(mini, for_seconds=2 * PROMISED_SECONDS)
    mini.process.send_signal(signal.SIGCONT)
    onlooker.stays(mini, for_seconds=1)


@pytest.mark.matrix
def test_an_agent_that_hangs_is_listed_no_more(new_lab, took):
    lab = new_lab("studio", "mini")
    mini, onlooker = Agent(lab["mini"]), Onlooker(lab["studio"])
    onlooker.shows(mini)
    stopped = time.monotonic()
    mini.process.send_signal(signal.SIGSTOP)
    gone = onlooker.misses(mini, after=stopped)
    assert took("it hangs: it is listed no more", gone - stopped) < USUAL_TIMES.busy + LIMIT_SECONDS
