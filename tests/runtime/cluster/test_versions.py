"""Which versions must agree before a start, and a start over real agents of which one has another mlx."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from discovery.home import temporary_home
from resources.node import NodeResources, Versions
from runtime.cli.virtual_nodes import VirtualNode, VirtualNodes
from runtime.cluster.client import SessionClient
from runtime.cluster.versions import version_refusal, version_warnings
from runtime.errors import PomonaError
from tests.running import Agents, find, plan_for, workers

if TYPE_CHECKING:
    from pathlib import Path

SAME = Versions("0.1.0", "0.32.4", "0.32.2", "3.12.8", "macOS 26.1")
GIB = 1 << 30


def node(name: str, **other: str) -> NodeResources:
    versions = msgspec.structs.replace(SAME, **other)
    return NodeResources(name * 8, name, "Apple M4", 16 * GIB, 8 * GIB, virtual=False, versions=versions)


def test_the_same_versions_are_fine():
    assert version_refusal([node("Studio"), node("mini")]) is None
    assert version_warnings([node("Studio"), node("mini")]) == ()
    assert version_refusal([]) is None


@pytest.mark.parametrize(("part", "name"), [("pomona", "Pomona"), ("mlx", "mlx"), ("mlx_lm", "mlx-lm")])
def test_what_computes_must_be_the_same_and_both_versions_are_named(part, name):
    refusal = version_refusal([node("Studio"), node("Air"), node("mini", **{part: "0.31.7"})])
    assert refusal is not None
    assert f"Studio has {name} {getattr(SAME, part)} and mini has 0.31.7" in refusal


@pytest.mark.parametrize(("part", "value"), [("system", "macOS 26.2"), ("python", "3.13.0")])
def test_another_system_or_python_is_a_warning(part, value):
    nodes = [node("Studio"), node("mini", **{part: value})]
    assert version_refusal(nodes) is None
    (warning,) = version_warnings(nodes)
    assert getattr(SAME, part) in warning
    assert value in warning


def test_a_node_that_does_not_say_is_no_refusal():
    nodes = [node("Studio", mlx="unknown"), node("mini")]
    assert version_refusal(nodes) is None
    assert version_warnings(nodes) == ("Studio does not say which mlx it has.",)


async def test_an_agent_with_another_mlx_stops_the_start(demo_model, tmp_path: Path, monkeypatch):
    """The agent is real; what it finds installed is not."""
    other = tmp_path / "site" / "mlx-0.1.7.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: mlx\nVersion: 0.1.7\n")
    memory = 2 * GIB
    with temporary_home() as home, VirtualNodes([VirtualNode("Apricot", memory)], home, tmp_path / "log") as one:
        started = one.started()
        monkeypatch.setenv("PYTHONPATH", str(other.parent))
        with VirtualNodes([VirtualNode("Cherry", memory)], home, tmp_path / "log") as another:
            agents = Agents(home, [*started, *another.started()])
            nodes = await find(agents)
            plan, ours = plan_for(demo_model, nodes, [15, 15]), nodes[0].resources.versions.mlx
            with pytest.raises(PomonaError, match=f"Apricot has mlx {ours} and Cherry has 0.1.7"):
                await SessionClient.start(plan, demo_model, nodes, home.folder)
            assert workers(agents) == []
