"""Models by name: found here, on a node or on the hub, listed and deleted on every node, and run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from runtime.agent.models.messages import ModelOrder
from runtime.cluster.client import SessionClient
from runtime.cluster.meeting import introduce
from runtime.cluster.messages import Failed, ModelFetch, Ready
from runtime.cluster.model_lists import models_on, remove_on
from runtime.cluster.model_names import find_model, own_library, session_folder
from runtime.cluster.models import ModelProvider
from runtime.errors import PomonaError
from runtime.models.manifest import folder_manifest
from runtime.models.parts import model_parts, stage_parts
from tests.hub import LFS, LocalHub, write_small_model
from tests.running import LOAD_SECONDS, Running, find, plan_for

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "someone/Small-Llama"
TOKEN = "hf_of_this_person_alone"


@pytest.fixture
def hub(tmp_path, monkeypatch, demo_model) -> Iterator[LocalHub]:
    """A hub that asks for a token; agents that start after it take it for the public one, and have no token."""
    repositories = {NAME: write_small_model(tmp_path / "origin", layers=6), "someone/Small-LM": demo_model}
    with LocalHub(repositories, token=TOKEN) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield hub


async def test_a_model_is_listed_found_kept_and_deleted_on_every_node(hub, own_agents, tmp_path):
    home, nodes = own_agents.home, await find(own_agents)
    ids = [node.resources.node_id for node in nodes]
    with pytest.raises(PomonaError, match="The hub asks for permission"):
        await find_model(home, NAME, nodes=nodes)
    (home.folder / "hub-token").write_text(TOKEN)
    manifest = (await find_model(home, NAME, nodes=nodes)).manifest
    parts = model_parts(manifest)
    order = ModelOrder(manifest.name, manifest.repository, manifest.revision)
    lines: list[str] = []
    provider = ModelProvider(home, order, parts, lambda _node, words, _progress: lines.append(words))
    await introduce(home, nodes)
    await provider.provide(nodes, {ids[0]: stage_parts(parts, 0, 2), ids[1]: stage_parts(parts, 2, 6)}, ids[:1])
    assert TOKEN not in (tmp_path / "log").read_text()
    asked = hub.content_bytes("")

    held = {found.node.resources.node_id: found.models for found in await models_on(home, nodes)}
    assert [[model.layers_held for model in held[node_id]] for node_id in ids] == [[2], [4], []]
    assert held[ids[0]][0].repository == NAME

    # This machine has nothing of it, and the hub is not asked any more: the nodes say what it is made of.
    assert (await find_model(home, NAME, nodes=nodes)).manifest == manifest
    folder = await session_folder(home, NAME, nodes=nodes)
    assert (folder / "tokenizer.json").is_file()
    assert own_library(home).store.find(NAME) is not None

    # A full copy on the third node, which two nodes beside the order give.
    lines.clear()
    await provider.provide(nodes[2:], {ids[2]: sorted(parts)}, ids[2:], others=nodes[:2])
    (line,) = [line for line in lines if line]
    names = [node.resources.name for node in nodes]
    assert line.startswith(f"{names[2]}: has 0 of 6 layers; ")
    assert {part for part in line.replace(";", "").split() if part in names[:2]} == set(names[:2])
    assert hub.content_bytes("") == asked

    # Two full copies at once of what nobody has: each asks the hub for a half, and the other for the rest.
    for node in nodes:
        assert await remove_on(home, node, ModelOrder(NAME, "", "")) > 0
    await introduce(home, nodes)
    before = hub.content_bytes(LFS)
    async with asyncio.timeout(20):
        await provider.provide(nodes[:2], {node_id: sorted(parts) for node_id in ids[:2]}, ids[:2])
    tensor_bytes = sum(part.tensor_bytes for part in parts.values())
    assert tensor_bytes <= hub.content_bytes(LFS) - before <= 1.1 * tensor_bytes

    with pytest.raises(PomonaError, match=f"{names[2]}: {NAME} is not in Pomona's store on this node"):
        await remove_on(home, nodes[2], ModelOrder(NAME, "", ""))
    assert [len(found.models) for found in await models_on(home, nodes)] == [1, 1, 0]


@pytest.mark.matrix
@pytest.mark.timeout(300)
async def test_a_session_starts_by_a_name_on_the_hub(hub, own_agents, demo_model):
    home, nodes = own_agents.home, await find(own_agents)
    (home.folder / "hub-token").write_text(TOKEN)
    folder = await session_folder(home, "someone/Small-LM", nodes=nodes)
    assert not list(folder.glob("*.safetensors"))
    client = await SessionClient.start(plan_for(folder, nodes, (5, 18, 7)), folder, nodes, home.folder)
    try:
        running = Running(client, client.events())
        words = []
        async with asyncio.timeout(2 * LOAD_SECONDS):
            while True:
                event = await running.next_of(ModelFetch, Ready, Failed)
                if not isinstance(event, ModelFetch):
                    break
                words += [event.words] if event.words else []
            assert isinstance(event, Ready), event
            text, _tokens, _finished = await running.ask("What is the capital of France?", max_tokens=12)
    finally:
        await client.close()
    assert "Paris" in text
    assert sorted(word.partition(": ")[2].partition(";")[0] for word in words) == [
        "has 0 of 18 layers",
        "has 0 of 5 layers",
        "has 0 of 7 layers",
    ]
    whole = sum(part.tensor_bytes for part in model_parts(folder_manifest(demo_model)).values())
    assert hub.content_bytes(LFS) < 1.03 * whole
