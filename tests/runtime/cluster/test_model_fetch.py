"""A session's nodes fetch what their layers need before their workers start, and no more."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import pytest

from runtime.agent.models.messages import ModelOrder
from runtime.cluster.client import SessionClient
from runtime.cluster.meeting import introduce
from runtime.cluster.messages import Failed, ModelFetch, Ready, Resplit
from runtime.cluster.models import ModelProvider
from runtime.errors import PomonaError
from runtime.models.hub.client import HubClient
from runtime.models.hub.repository import hub_manifest
from runtime.models.manifest import folder_manifest
from runtime.models.parts import model_parts, stage_parts
from tests.hub import LocalHub, write_small_model
from tests.running import LOAD_SECONDS, Running, find, plan_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runtime.agent.models.messages import FetchProgress
    from runtime.cluster.nodes import KnownNode

QUESTION = "Name a colour."


def megabytes(folder: Path, first: int, end: int, without: tuple[int, int] = (0, 0)) -> str:
    """What a stage needs beyond the layers that it has, as a person reads it."""
    parts = model_parts(folder_manifest(folder))
    names = set(stage_parts(parts, first, end))
    if without[1]:
        names -= set(stage_parts(parts, *without))
    return f"{sum(parts[name].byte_count for name in names) / 1e6:.1f} MB"


@pytest.mark.matrix
@pytest.mark.timeout(300)
async def test_nodes_fetch_their_layers_and_a_moved_boundary_only_what_moved(own_agents, demo_model):
    nodes = await find(own_agents)
    names = [node.resources.name for node in nodes]
    plan = plan_for(demo_model, nodes, (5, 18, 7))
    whole = nodes[1].resources.node_id
    client = await SessionClient.start(plan, demo_model, nodes, own_agents.home.folder, folder_on=[whole])
    try:
        running = Running(client, client.events())
        async with asyncio.timeout(2 * LOAD_SECONDS):
            lines = sorted(await until_ready(running), key=lambda words: names.index(words.partition(":")[0]))
            assert len(lines) == 2
            for line, name, span in zip(lines, (names[0], names[2]), ((0, 5), (23, 30)), strict=True):
                count, size = span[1] - span[0], megabytes(demo_model, *span)
                assert re.fullmatch(rf"{name}: has 0 of {count} layers; {size} from {names[1]}", line)
            _text, tokens, _finished = await running.ask(QUESTION, max_tokens=12)
            await client.send(Resplit(plan_for(demo_model, nodes, (7, 16, 7))))
            (line,) = await until_ready(running)
            moved = megabytes(demo_model, 0, 7, without=(0, 5))
            assert re.fullmatch(rf"{names[0]}: has 5 of 7 layers; {moved} from {names[1]}", line)
            _text, again, _finished = await running.ask(QUESTION, "again", max_tokens=12)
    finally:
        await client.close()
    assert tokens == again


async def until_ready(running: Running) -> list[str]:
    """The lines about what nodes fetch, in the order of the nodes."""
    lines = []
    while True:
        event = await running.next_of(ModelFetch, Ready, Failed)
        if isinstance(event, ModelFetch):
            lines += [event.words] if event.words else []
        else:
            assert isinstance(event, Ready), event
            return lines


async def test_a_model_that_nobody_has_is_said(own_agents, demo_model):
    nodes = await find(own_agents)
    plan = plan_for(demo_model, nodes, (5, 18, 7))
    client = await SessionClient.start(plan, demo_model, nodes, own_agents.home.folder, folder_on=[])
    try:
        running = Running(client, client.events())
        async with asyncio.timeout(LOAD_SECONDS):
            failed = await running.next_of(Failed, Ready)
        assert isinstance(failed, Failed)
        assert re.search("No node in reach has SmolLM2-135M-Instruct, and it is on no hub", failed.reason)
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("killed", "reason"),
    [
        (0, r"{reader}( is gone: what it has fetched stays|.* was lost while it fetched the model)"),
        (1, r"{reader}: .* could not be fetched: {giver} is not reached any more"),
    ],
    ids=["the node that fetches", "the node that gives"],
)
async def test_a_killed_agent_is_named(own_agents, demo_model, killed, reason):
    nodes = (await find(own_agents))[:2]
    names = [node.resources.name for node in nodes]
    manifest = folder_manifest(demo_model)
    parts = model_parts(manifest)
    order = ModelOrder(manifest.name, manifest.repository, manifest.revision, str(demo_model))

    def kill(_node: KnownNode, _words: str, progress: FetchProgress | None) -> None:
        if progress is not None and progress.done_bytes < progress.total_bytes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(own_agents.started[killed].pid, signal.SIGKILL)

    await introduce(own_agents.home, nodes)
    provider = ModelProvider(own_agents.home, order, parts, kill, folder_on=[nodes[1].resources.node_id])
    with pytest.raises(PomonaError, match=reason.format(reader=names[0], giver=names[1])):
        await provider.provide(nodes, {nodes[0].resources.node_id: sorted(parts)})


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Iterator[LocalHub]:
    """A hub with a model of 30 layers, which agents that start after it take for the public one."""
    with LocalHub({"someone/Small-Llama": write_small_model(tmp_path / "origin", layers=30)}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        yield hub


async def test_three_nodes_fetch_only_their_bytes_and_the_hub_is_asked_once(hub, own_agents):
    """Over real agents: 5, 18 and 7 layers from the hub, then 7, 16 and 7, for which the hub is not asked."""
    nodes = await find(own_agents)
    async with HubClient(hub.endpoint) as client:
        manifest = await hub_manifest(client, "someone/Small-Llama")
    parts = model_parts(manifest)
    lines: list[str] = []

    def note(_node: KnownNode, words: str, _progress: FetchProgress | None) -> None:
        lines.extend([words] if words else [])

    def wanted(*split: int) -> dict[str, list[str]]:
        edges = pairwise(accumulate(split, initial=0))
        return {node.resources.node_id: stage_parts(parts, *span) for node, span in zip(nodes, edges, strict=True)}

    await introduce(own_agents.home, nodes)
    order = ModelOrder(manifest.name, manifest.repository, manifest.revision)
    provider = ModelProvider(own_agents.home, order, parts, note)
    before = hub.content_bytes()
    await provider.provide(nodes, wanted(5, 18, 7))
    tensor_bytes = sum(part.tensor_bytes for part in parts.values())
    assert tensor_bytes <= hub.content_bytes() - before <= 1.03 * tensor_bytes
    assert [line.partition(": ")[2].partition(";")[0] for line in lines] == [
        f"has 0 of {count} layers" for count in (5, 18, 7)
    ]
    before = hub.content_bytes("")
    lines.clear()
    would = await provider.preview(nodes, wanted(7, 16, 7))
    await provider.provide(nodes, wanted(7, 16, 7))
    assert lines == would
    assert hub.content_bytes("") == before
    moved = sum(parts[f"layer-{layer:05}"].byte_count for layer in (5, 6)) / 1e6
    assert lines == [f"{nodes[0].resources.name}: has 5 of 7 layers; {moved:.1f} MB from {nodes[1].resources.name}"]
