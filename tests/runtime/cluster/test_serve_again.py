"""A running session opens its API elsewhere, or for others, without a restart."""

from __future__ import annotations

import asyncio
import socket

import aiohttp

from runtime.cluster.client import SessionClient
from runtime.cluster.messages import Failed, Ready, Serve, ServeRefused, Serving
from runtime.server.options import ApiOptions
from tests.running import LOAD_SECONDS, Running, find, plan_for


async def status_of(address: str, key: str = "") -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with aiohttp.ClientSession(headers=headers) as http, http.get(f"{address}/models") as answer:
        return answer.status


async def test_port_and_key_change_while_the_model_runs(agents, demo_model):
    nodes = (await find(agents))[:1]
    plan = plan_for(demo_model, nodes, (30,))
    client = await SessionClient.start(plan, demo_model, nodes, agents.home.folder, api=ApiOptions(port=0))
    try:
        running = Running(client, client.events())
        async with asyncio.timeout(LOAD_SECONDS):
            first = await running.next_of(Serving)
            ready = await running.next_of(Ready, Failed)
            assert isinstance(ready, Ready), ready
            assert await status_of(first.address) == 200

            await client.send(Serve(ApiOptions(port=0, api_key="secret")))
            second = await running.next_of(Serving)
            assert second.api_key == "secret"
            assert [await status_of(second.address, key) for key in ("", "secret")] == [401, 200]

            with socket.create_server(("127.0.0.1", 0)) as taken:
                await client.send(Serve(ApiOptions(port=taken.getsockname()[1])))
                refused = await running.next_of(ServeRefused)
                assert "is taken" in refused.reason
                third = await running.next_of(Serving)
            assert third.api_key == "secret"
            assert await status_of(third.address, "secret") == 200
            text, _tokens, _finished = await running.ask("What is the capital of France?", max_tokens=12)
            assert "Paris" in text
    finally:
        await client.close()
