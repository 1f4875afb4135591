"""Agents for tests that need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.agent.key import new_key
from runtime.cli.virtual_nodes import VirtualNodes, virtual_nodes
from tests.runtime.running import Agents, workers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def shared_agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    """Three virtual nodes for the whole run; take ``agents`` instead."""
    key = new_key()
    with VirtualNodes(virtual_nodes(3), key, tmp_path_factory.mktemp("agents") / "log") as nodes:
        yield Agents(key, nodes.started())


@pytest.fixture
def agents(shared_agents: Agents) -> Iterator[Agents]:
    """Three virtual nodes that live on after the test; checks that it left no worker on them."""
    yield shared_agents
    assert workers(shared_agents) == []


@pytest.fixture
def own_agents(tmp_path) -> Iterator[Agents]:
    """Three virtual nodes that the test may kill."""
    key = new_key()
    with VirtualNodes(virtual_nodes(3), key, tmp_path / "log") as nodes:
        yield Agents(key, nodes.started())
