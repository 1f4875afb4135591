"""What crosses the wire when three paired hosts fetch their layers: the tensors' own bytes, once, and little more."""

from __future__ import annotations

import json
import subprocess
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import pytest

from runtime.models.manifest import folder_manifest
from runtime.models.parts import model_parts, stage_parts
from tests.hub import write_small_model
from tests.netlab.agents import Agent, pair, pomona, said
from tests.netlab.model_hub import PORT
from tests.netlab.watched import WAIT_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.netlab.lab import Host, Lab

NAME = "someone/Small-Llama"
NODES = ("studio", "mini", "air")
MOST = 1.03
"""Times the tensors' own bytes."""
CHATTER_BYTES = 200_000
"""Agents ask each other once a second how they are, and mDNS goes on."""

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]


class Fetching:
    """Three paired agents, a hub on a host of its own, and a model on it of 2.5 MB a layer."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.parts = model_parts(folder_manifest(folder))
        hub = lab["hub"]
        self.environment = {"HF_ENDPOINT": f"http://{hub.address()}:{PORT}"}
        words = ("-m", "tests.netlab.model_hub", str(folder), NAME, hub.address())
        self.hub = hub.python(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.hub.stdout is not None
        assert self.hub.stdout.readline()
        self.agents = [self.agent(name) for name in NODES]
        for agent in self.agents:
            assert agent.node_id, "it listens"
        for agent in self.agents[1:]:
            pair(lab["studio"], agent)
        said(lab["studio"], "links")  # measuring them moves bytes; from now on they are known

    def agent(self, name: str) -> Agent:
        return Agent(self.lab[name], env=self.environment)

    def started(self, *words: str) -> subprocess.Popen[bytes]:
        """``pomona models fetch`` on studio."""
        command = ("models", "fetch", NAME, *words)
        return pomona(self.lab["studio"], *command, env=self.environment, stderr=subprocess.PIPE)

    def fetch(self, *words: str) -> list[str]:
        """The same to its end; returns the line about each node."""
        process = self.started(*words)
        _output, told = process.communicate(timeout=4 * WAIT_SECONDS)
        assert process.returncode == 0, told.decode()
        return [line for line in told.decode().splitlines() if ": has " in line]

    def fetch_split(self, split: tuple[int, ...]) -> list[str]:
        named = [word for name in NODES for word in ("--node", name)]
        return self.fetch(*named, "--split", ",".join(map(str, split)))

    def tensor_bytes(self, split: tuple[int, ...]) -> list[int]:
        """The tensors' own bytes of each node's share."""
        shares = [stage_parts(self.parts, *span) for span in pairwise(accumulate(split, initial=0))]
        return [sum(self.parts[name].tensor_bytes for name in share) for share in shares]


@pytest.fixture
def fetching(new_lab, tmp_path) -> Fetching:
    folder = write_small_model(tmp_path / "Small-Llama", layers=30, width=256)
    return Fetching(new_lab(*NODES, "hub"), folder)


def test_nodes_fetch_their_layers_and_a_moved_boundary_moves_two(fetching):
    hosts: list[Host] = [fetching.lab[name] for name in NODES]
    hub = fetching.lab["hub"]
    own = fetching.tensor_bytes((5, 18, 7))
    before, sent = [host.received_bytes() for host in hosts], hub.sent_bytes()
    lines = fetching.fetch_split((5, 18, 7))
    assert [line.partition(";")[0] for line in sorted(lines)] == [
        "air: has 0 of 7 layers",
        "mini: has 0 of 18 layers",
        "studio: has 0 of 5 layers",
    ]
    assert sum(own) < hub.sent_bytes() - sent < MOST * sum(own)
    for host, received, tensors in zip(hosts, before, own, strict=True):
        assert tensors < host.received_bytes() - received < MOST * tensors + CHATTER_BYTES, host.name

    before, sent, gave = [host.received_bytes() for host in hosts], hub.sent_bytes(), fetching.lab["mini"].sent_bytes()
    (line,) = fetching.fetch_split((7, 16, 7))
    moved = fetching.tensor_bytes((5, 2, 23))[1]
    assert line.startswith(f"studio: has 5 of 7 layers; {moved / 1e6:.1f} MB from mini over Ethernet")
    assert "the hub" not in line
    assert hub.sent_bytes() - sent < 5_000
    assert moved < fetching.lab["mini"].sent_bytes() - gave < MOST * moved + CHATTER_BYTES
    came = [host.received_bytes() - had for host, had in zip(hosts, before, strict=True)]
    assert moved < came[0] < MOST * moved + CHATTER_BYTES
    assert max(came[1:]) < CHATTER_BYTES

    # Without the hub, the nodes together still have the model.
    fetching.lab["hub"].kill(fetching.hub)
    (line,) = fetching.fetch("--node", "air", "--full")
    assert line.startswith("air: has 7 of 30 layers; ")
    assert "the hub" not in line
    listed = json.loads(said(fetching.lab["studio"], "models", "--json"))
    assert {model["node"]: model["layers_held"] for model in listed} == {"this machine": 7, "mini": 18, "air": 30}


def test_a_cut_cable_is_said_and_the_fetch_goes_on_where_it_stopped(fetching):
    studio, mini = fetching.lab["studio"], fetching.lab["mini"]
    fetching.fetch("--node", "mini")
    fetching.lab["hub"].kill(fetching.hub)  # or the rest would come from there
    mini.limit_rate(80)
    process = fetching.started("--node", "studio")
    assert process.stderr is not None
    for line in process.stderr:  # until a good part has come
        if line.startswith(b"studio: ") and b": has " not in line and float(line.split()[1]) > 0.02:
            break
    mini.pull()
    told = process.stderr.read().decode()
    assert process.wait(4 * WAIT_SECONDS) == 2
    assert "mini" in told.splitlines()[-1]
    assert "Traceback" not in told
    mini.push()
    before = studio.received_bytes()
    (line,) = fetching.fetch("--node", "studio")
    whole = sum(part.byte_count for part in fetching.parts.values())
    assert studio.received_bytes() - before < whole - 20e6
    assert "the hub" not in line
