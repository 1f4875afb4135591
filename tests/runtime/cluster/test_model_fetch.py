"""A session's nodes fetch what their layers need before their workers start, and no more."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from typing import TYPE_CHECKING

import pytest

from runtime.agent.models.messages import ModelOrder
from runtime.cluster.client import SessionClient
from runtime.cluster.meeting import introduce
from runtime.cluster.messages import Failed, ModelFetch, Ready, Resplit
from runtime.cluster.models import ModelProvider
from runtime.errors import PomonaError
from runtime.models.manifest import folder_manifest
from runtime.models.parts import model_parts, stage_parts
from tests.running import LOAD_SECONDS, Running, find, plan_for

if TYPE_CHECKING:
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
                assert re.fullmatch(rf"{name}: has 0 of {count} layers; {size} from {names[1]} .*", line)
            _text, tokens, _finished = await running.ask(QUESTION, max_tokens=12)
            await client.send(Resplit(plan_for(demo_model, nodes, (7, 16, 7))))
            (line,) = await until_ready(running)
            moved = megabytes(demo_model, 0, 7, without=(0, 5))
            assert re.fullmatch(rf"{names[0]}: has 5 of 7 layers; {moved} from {names[1]} .*", line)
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
