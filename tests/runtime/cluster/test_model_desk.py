"""What a person does with models, over real agents: fetch, pause, go on, give up, keep, delete, list."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import psutil
import pytest

from runtime.agent.models.messages import ModelOrder
from runtime.cluster.catalogue import catalogue
from runtime.cluster.model_desk import ModelDesk
from runtime.errors import PomonaError
from tests.hub import LFS, LocalHub, write_small_model
from tests.running import find, plan_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web

    from runtime.agent.models.messages import FetchProgress
    from runtime.cluster.nodes import KnownNode

NAME = "someone/Small-Llama"
ORDER = ModelOrder("Small-Llama", NAME, "")


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Iterator[LocalHub]:
    with LocalHub({NAME: write_small_model(tmp_path / "origin", layers=6)}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield hub


def nothing(_node: KnownNode, _words: str, _progress: FetchProgress | None) -> None:
    pass


async def layers_on(desk: ModelDesk, nodes: list[KnownNode]) -> list[int]:
    """How many layers of the one model each node has; -1 where it is not listed."""
    places = [await desk.on_node(node) for node in nodes]
    return [place.models[0].layers_held if place.models else -1 for place in places]


async def test_a_fetch_that_is_given_up_leaves_nothing_and_a_paused_one_goes_on(hub, own_agents):
    nodes = await find(own_agents)
    desk = ModelDesk(own_agents.home.folder)
    silent, asked = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hold(request: web.Request) -> web.StreamResponse | None:
        if request.path.startswith("/content/") and "Range" in request.headers and len(hub.asked) > 12:
            loop.call_soon_threadsafe(asked.set)
            while not silent.is_set():  # noqa: ASYNC110  the event belongs to another loop
                await asyncio.sleep(0.05)
        return None

    hub.fault = hold
    fetch = asyncio.create_task(desk.fetch_full(ORDER, nodes[0], nodes, nothing))
    async with asyncio.timeout(30):
        await asked.wait()
    fetch.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await fetch
    silent.set()
    hub.fault = None
    await desk.forget_unfinished(ORDER, nodes[:1])
    (held, *others) = await layers_on(desk, nodes)
    assert held != 0, "a model of which there is no part is listed"
    assert held < 6
    assert others == [-1, -1]

    seen: list[FetchProgress] = []
    await desk.fetch_full(ORDER, nodes[0], nodes, lambda _node, _words, now: seen.append(now) if now else None)
    assert (await layers_on(desk, nodes))[0] == 6
    await desk.forget_unfinished(ORDER, nodes[:1])
    assert (await layers_on(desk, nodes))[0] == 6


async def test_the_catalogue_has_each_model_once_with_its_holders(hub, own_agents):
    nodes = await find(own_agents)
    desk = ModelDesk(own_agents.home.folder)
    facts = await desk.describe(NAME, nodes)
    assert (facts.layer_count, facts.layers_held, facts.repository) == (6, 0, NAME)
    assert hub.content_bytes(LFS) < facts.weight_bytes / 10

    folder = await desk.folder(ORDER, nodes)
    order = await desk.order_of(folder)
    assert (order.repository, len(order.revision)) == (NAME, 40)
    await desk.fetch_plan(folder, plan_for(folder, nodes, (1, 3, 2)), nodes, nothing)
    assert await layers_on(desk, nodes) == [1, 3, 2]

    desk.mark(NAME, on=True)
    desk.mark("someone/Elsewhere", on=True)
    places = [await desk.here("this machine"), *[await desk.on_node(node) for node in nodes]]
    first, lost = catalogue(places, desk.favourites()).listings
    assert (first.full_name, first.is_favourite) == (NAME, True)
    assert [holding.model.layers_held for holding in first.holdings] == [0, 1, 3, 2]
    assert first.facts is not None
    assert first.facts.weight_bytes == facts.weight_bytes
    assert (lost.name, lost.facts) == ("Elsewhere", None)

    assert await desk.remove(order, nodes[1]) > 0
    assert await desk.remove(order) > 0
    assert await layers_on(desk, nodes) == [1, -1, 2]
    with pytest.raises(PomonaError, match="is not in Pomona's store on this machine"):
        await desk.remove(order)
    desk.mark("someone/Elsewhere", on=False)
    assert desk.favourites() == (NAME,)


async def test_a_folder_that_was_opened_is_among_the_models_of_this_machine(own_agents, tmp_path):
    desk = ModelDesk(own_agents.home.folder)
    folder = write_small_model(tmp_path / "Mine", layers=3)
    order = await desk.order_of(folder)
    (mine,) = [model for model in (await desk.here("this machine")).models if model.name == "Mine"]
    assert (mine.revision, mine.layers_held, mine.is_ours) == (order.revision, 3, False)
    nodes = await find(own_agents)
    assert await desk.folder(order, nodes) == folder
    await desk.fetch_full(order, nodes[0], nodes, nothing)
    assert "Mine" in [model.name for model in (await desk.on_node(nodes[0])).models]


async def test_a_node_that_does_not_answer_is_named(own_agents):
    node = (await find(own_agents))[0]
    await asyncio.to_thread(_stop, own_agents, node.resources.node_id)
    place = await ModelDesk(own_agents.home.folder).on_node(node)
    assert place.models == ()
    assert place.name in place.trouble


def _stop(agents, node_id: str) -> None:
    process = psutil.Process(next(one.pid for one in agents.started if one.node_id == node_id))
    process.terminate()
    process.wait(10)
