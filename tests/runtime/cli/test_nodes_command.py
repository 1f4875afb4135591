"""``pomona nodes``: all that is known of real agents, and a line for a person."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from resources.node import Battery, MemoryParts, NodeResources, Versions
from resources.words import describe
from runtime.agent.folder import HOME_VARIABLE
from runtime.cli.memory_cap import parse_cap
from runtime.cli.nodes import Listing
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = Versions("0.1.0", "0.32.4", "0.32.2", "3.12.1", "macOS 26.2")
GIB = 1 << 30


def nodes(home: Path, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    """The command of someone whose data is in ``home``; it looks on this machine alone."""
    return subprocess.run(
        [*before, sys.executable, "-m", "pomona", "nodes", "--only-here", *arguments],
        env={**os.environ, HOME_VARIABLE: str(home)}, capture_output=True, check=False,
    )  # fmt: skip


@pytest.mark.timeout(180)
def test_every_agent_is_listed_with_what_it_has(agents):
    done = nodes(agents.home.folder, "--json", "--seconds", "8")
    assert done.returncode == 0, done.stderr
    found = msgspec.json.decode(done.stdout, type=list[Listing])
    assert {node.node_id for node in found if node.paired} == {agent.node_id for agent in agents.started}
    for node in found:
        if not node.paired:  # other agents on this machine are none of ours
            continue
        assert node.resources is not None
        assert node.resources.virtual
        assert node.resources.disk_free_bytes is not None


def test_agents_that_are_not_paired_are_listed_without_what_they_have(agents, tmp_path):
    done = nodes(tmp_path, "--json", "--seconds", "8")
    assert done.returncode == 0, done.stderr
    found = {node.node_id: node for node in msgspec.json.decode(done.stdout, type=list[Listing])}
    for agent in agents.started:
        node = found[agent.node_id]
        assert (node.paired, node.resources) == (False, None)
        assert node.name


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs a network namespace of its own")
def test_no_node_is_exit_status_1_and_says_what_to_try(tmp_path):
    done = nodes(
        tmp_path, "--seconds", "1", before=("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "-")
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"pomona doctor" in done.stderr


def test_a_line_for_a_person_leaves_out_what_is_unknown():
    bare = NodeResources("f" * 64, "Box", "unknown chip", 8 * GIB, 4 * GIB, False, VERSIONS)
    assert describe(bare) == (
        "Box: unknown chip; 4.0 of 8.0 GB free for a model; macOS 26.2, pomona 0.1.0, mlx 0.32.4, mlx-lm 0.32.2"
    )
    known = msgspec.structs.replace(
        bare, chip="Apple M5 Max", gpu_cores=40, memory_bandwidth_bytes_per_second=614 * 10**9,
        memory_bandwidth_source="table", gpu_memory_limit_bytes=6 * GIB, disk_free_bytes=90 * GIB, gpu_load=0.42,
        battery=Battery(12, on_mains=False), thermal_warning=True, low_power_mode=False, memory_pressure="critical",
        memory=MemoryParts(3 * GIB, GIB, 0, 0, 4 * GIB), memory_cap_bytes=5 * GIB, system_power_watts=38.4,
        gpu_temperature_celsius=61.2,
    )  # fmt: skip
    assert describe(known) == (
        "Box: Apple M5 Max, 40 GPU cores, 614 GB/s (table); "
        "4.0 of 8.0 GB free for a model (others have 3.0; models 1.0: weights 1.0, caches 0.0; "
        "the GPU may use 6.0; Pomona 5.0 at most, as usual); GPU 42% busy; 38 W; GPU 61 °C; disk 90 GB free; "
        "battery 12%; too warm; memory pressure critical; "
        "macOS 26.2, pomona 0.1.0, mlx 0.32.4, mlx-lm 0.32.2"
    )


@pytest.mark.parametrize(
    ("text", "cap"), [("24GB", 24 * GIB), ("500 mb", 500 << 20), ("60%", round(0.6 * 64 * GIB)), ("usual", None)]
)
def test_an_amount_of_memory_may_be_written_in_several_ways(text, cap):
    assert parse_cap(text, 64 * GIB) == cap


@pytest.mark.parametrize("text", ["", "much", "-3GB", "65GB", "101%", "24", "1e9GB", "9999999999GB"])
def test_what_is_no_amount_is_refused_in_a_sentence(text):
    with pytest.raises(PomonaError, match=r"amount of memory|more than that node has"):
        parse_cap(text, 64 * GIB)


def test_a_node_that_is_not_there_takes_no_cap(tmp_path):
    refused = nodes(tmp_path, "--seconds", "1", "--at-most", "nobody", "1GB")
    assert (refused.returncode, refused.stderr) == (
        2, b"pomona: nobody is no node that answers; `pomona nodes --json` shows them.\n",
    )  # fmt: skip
