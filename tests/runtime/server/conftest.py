"""One real two-rank session for every test of the API with real clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from openai import OpenAI

from tests.runtime.server import speaking_model
from tests.runtime.server.serving import KEY, WAITING, Serving, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def speaking(demo_model, tmp_path_factory) -> Path:
    """A model with tools and thoughts."""
    return speaking_model.make(demo_model, tmp_path_factory.mktemp("models") / speaking_model.NAME)


@pytest.fixture(scope="session")
def shared_server(speaking) -> Iterator[Serving]:
    with serving(speaking, "--virtual-nodes", "2", "--split", "13,17", "--waiting", str(WAITING)) as server:
        yield server


@pytest.fixture
def client(server) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.address, api_key=KEY, max_retries=0) as client:
        yield client


@pytest.fixture
def server(shared_server) -> Iterator[Serving]:
    """Checks that the test left nothing running on it."""
    yield shared_server
    shared_server.wait_until_idle()
