"""A model over three paired hosts with uneven layers, over the faster of two LANs."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.netlab.agents import Agent, pair, said
from tests.netlab.watched import WAIT_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.netlab.lab import Lab

SLOW_LAN, FAST_LAN = 0, 1
SLOW_MEGABITS = 100


def links_of(lab: Lab, *words: str) -> list[dict[str, Any]]:
    pairs: list[dict[str, Any]] = json.loads(said(lab["studio"], "links", "--json", *words))
    return pairs


def used_subnets(pairs: list[dict[str, Any]]) -> set[str]:
    """The first three numbers of all addresses that jobs would use."""
    used = [link for pair in pairs for link in pair["links"] if link["used"]]
    return {address.rpartition(".")[0] for link in used for address in link["addresses"]}


def sent_bytes(lab: Lab, lan: int) -> int:
    return sum(host.sent_bytes(lan) for host in lab.hosts)


def run_session(lab: Lab, folder: Path, agents: list[Agent]) -> dict[str, Any]:
    ids = [agent.node_id for agent in agents]
    controller = lab["studio"].python("-m", "tests.netlab.session", str(folder), "5,18,7", *ids, stdout=subprocess.PIPE)
    output, _ = controller.communicate(timeout=5 * WAIT_SECONDS)
    assert controller.returncode == 0
    report: dict[str, Any] = json.loads(output)
    return report


@pytest.mark.timeout(500)
@pytest.mark.matrix
def test_a_session_runs_over_the_faster_lan_and_names_it(new_lab, demo_model):
    lab = new_lab("studio", "mini", "air", lans=2)
    for host in lab.hosts:
        host.limit_rate(SLOW_MEGABITS, SLOW_LAN)
    agents = [Agent(host) for host in lab.hosts]
    for agent in agents[1:]:
        pair(lab["studio"], agent)

    pairs = links_of(lab)
    assert len(pairs) == 3
    assert used_subnets(pairs) == {"10.78.0"}
    for found in pairs:
        rates = {link["used"]: link["bytes_per_second"] for link in found["links"]}
        assert rates[False] < SLOW_MEGABITS * 1e6 / 8 < rates[True]

    before = sent_bytes(lab, SLOW_LAN), sent_bytes(lab, FAST_LAN)
    report = run_session(lab, demo_model, agents)
    slow, fast = sent_bytes(lab, SLOW_LAN) - before[0], sent_bytes(lab, FAST_LAN) - before[1]
    layers = [(stage["node"], stage["first_layer"], stage["last_layer"]) for stage in report["stages"]]
    assert layers == [("studio", 0, 4), ("mini", 5, 22), ("air", 23, 29)]
    assert all(stage["held_bytes"] for stage in report["stages"])
    assert [(link["from_node"], link["to_node"]) for link in report["links"]] == [
        ("studio", "mini"),
        ("mini", "air"),
        ("air", "studio"),
    ]
    assert {link["name"] for link in report["links"]} == {"Ethernet 10G"}
    assert {link["address"].rpartition(".")[0] for link in report["links"]} == {"10.78.0"}
    assert report["tokens"]
    assert fast > 300_000
    assert slow < fast / 2


@pytest.mark.matrix
def test_a_person_chooses_another_link_and_it_is_remembered(new_lab):
    lab = new_lab("studio", "mini", lans=2)
    lab["mini"].limit_rate(SLOW_MEGABITS, SLOW_LAN)
    studio, mini = (Agent(host) for host in lab.hosts)
    pair(lab["studio"], mini)
    assert studio.node_id
    assert used_subnets(links_of(lab)) == {"10.78.0"}
    slow_address = lab["mini"].address(SLOW_LAN)
    (chosen,) = links_of(lab, "--use", "studio", "mini", slow_address)
    assert chosen["chosen_by"] == "person"
    (again,) = links_of(lab, "--again")
    assert used_subnets([again]) == {"10.77.0"}
    assert again["chosen_by"] == "person"
    assert used_subnets(links_of(lab, "--use", "studio", "mini", "fastest")) == {"10.78.0"}
