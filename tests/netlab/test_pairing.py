"""Two machines on one network become each other's nodes by the commands that a person types."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import msgspec
import pytest

from runtime.agent.messages import AgentStarted
from runtime.cli.nodes import Listing

if TYPE_CHECKING:
    from tests.netlab.lab import Host

pytestmark = pytest.mark.timeout(180)


def agent(host: Host) -> AgentStarted:
    """Start the agent of a machine as its owner would, and wait until it listens."""
    process = host.python("-m", "pomona", "agent", "--name", host.name, "--listen", "auto", stdout=subprocess.PIPE)
    assert process.stdout is not None
    return msgspec.json.decode(process.stdout.readline(), type=AgentStarted)


def pomona(host: Host, *words: str) -> str:
    process = host.python("-m", "pomona", *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = process.communicate(timeout=90)
    assert process.returncode == 0, errors.decode()
    return output.decode()


def paired(host: Host) -> dict[str, bool]:
    """Who is in sight of a machine, and whether it may be used."""
    listings = msgspec.json.decode(pomona(host, "nodes", "--json", "--seconds", "5"), type=list[Listing])
    return {node.name: node.paired for node in listings}


@pytest.fixture
def pair(new_lab):
    return new_lab("studio", "mini")


@pytest.fixture
def agents(pair):
    return [agent(host) for host in pair.hosts]


@pytest.mark.matrix
def test_a_machine_shows_itself_when_it_shows_a_code_and_both_can_be_used_when_they_are_paired(pair, agents):
    studio, mini = pair.hosts
    assert paired(studio) == {"studio": True}  # the other one listens to itself alone
    code = pomona(mini, "agent", "code").strip()
    assert pomona(studio, "pair", "mini", "--code", code, "--seconds", "20").startswith("Paired with ")
    assert paired(studio) == paired(mini) == {"studio": True, "mini": True}


@pytest.mark.matrix
def test_pairing_by_a_link_local_address(pair, agents):
    studio, mini = pair.hosts
    shown = output_of(mini, "ip", "-6", "-o", "address", "show", "dev", "eth0", "scope", "link")
    place = f"[{shown.split()[3].partition('/')[0]}%eth0]:{agents[1].port}"
    code = pomona(mini, "agent", "code").strip()
    assert pomona(studio, "pair", place, "--code", code, "--seconds", "1").startswith("Paired with ")
    assert paired(studio)["mini"]


def output_of(host: Host, *words: str) -> str:
    process = host.start(*words, stdout=subprocess.PIPE)
    return process.communicate(timeout=20)[0].decode()
