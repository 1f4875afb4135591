"""What every test shares: no display, the demo model, and virtual nodes for those that need them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from discovery.home import temporary_home
from runtime.cli.virtual_nodes import VirtualNodes, virtual_nodes
from runtime.models.demo import demo_model_folder
from tests.running import Agents, workers

# A slow machine is no failure: time is the benchmarks' subject.
settings.register_profile("pomona", deadline=None)
settings.load_profile("pomona")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.runtime.engine.ring import Ring


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """The demo model's folder: real weights."""
    return demo_model_folder()


@pytest.fixture(scope="session")
def shared_agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    """Three virtual nodes for the whole run; take ``agents`` instead."""
    log_file = tmp_path_factory.mktemp("agents") / "log"
    with temporary_home() as home, VirtualNodes(virtual_nodes(3), home, log_file) as nodes:
        yield Agents(home, nodes.started())


@pytest.fixture
def agents(shared_agents: Agents) -> Iterator[Agents]:
    """Three virtual nodes that live on after the test; checks that it left no worker on them."""
    yield shared_agents
    assert workers(shared_agents) == []


@pytest.fixture
def own_agents(tmp_path) -> Iterator[Agents]:
    """Three virtual nodes that the test may kill."""
    with temporary_home() as home, VirtualNodes(virtual_nodes(3), home, tmp_path / "log") as nodes:
        yield Agents(home, nodes.started())


@pytest.fixture(scope="session")
def ring() -> Iterator[Callable[[int], Ring]]:
    """MLX rings by their size, each started once. Only one runs at a time: a rank that waits in MLX's ring spins."""
    from tests.runtime.engine.ring import Ring  # brings mlx, which tests of the window do without

    rings: dict[int, Ring] = {}

    def of(size: int) -> Ring:
        for other in rings.values():
            if other.size != size:
                other.close()
        return rings.setdefault(size, Ring(size))

    yield of
    for each in rings.values():
        each.close()
