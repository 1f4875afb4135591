"""What an API does when sessions break, hang or are not there yet, and who may ask."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from runtime.cluster.text import ModelText
from runtime.errors import PomonaError
from runtime.server.application import ApiServer
from runtime.server.keys import own_api_key
from runtime.server.options import ApiOptions
from tests.runtime.server.scripted import NAME, Scripted, api

QUESTION: Any = [{"role": "user", "content": "Hello?"}]


@pytest.fixture(scope="module")
def text(speaking) -> ModelText:
    return ModelText(speaking)


def tokens_of(text: ModelText, words: str) -> list[int]:
    return list(text.tokenizer.encode(words, add_special_tokens=False))


async def gathered(stream, heard=None):
    """The events of a stream; raises what it ends with."""
    found = [] if heard is None else heard
    async for event in stream:
        found.append(event)
    return found


@pytest.fixture
def broken(text):
    return Scripted(text, tokens_of(text, "Once upon"), then="The worker on Cherry was ended by SIGKILL.")


async def test_an_answer_that_breaks_off_ends_its_stream_with_an_error(broken):
    async with api(broken) as address, gpt(address) as client:
        stream = await client.chat.completions.create(model=NAME, messages=QUESTION, stream=True)
        heard: list[Any] = []
        with pytest.raises(openai.APIError, match=r"Cherry was ended by SIGKILL"):
            await gathered(stream, heard)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in heard) == "Once upon"
        with pytest.raises(openai.InternalServerError, match="SIGKILL") as caught:
            await client.chat.completions.create(model=NAME, messages=QUESTION)
        assert caught.value.status_code == 503
        events = await gathered(await client.responses.create(model=NAME, input="Hello?", stream=True))
        assert events[-1].type == "response.failed"
        assert "SIGKILL" in events[-1].response.error.message
        completion = await client.completions.create(model=NAME, prompt="Hello?", stream=True)
        with pytest.raises(openai.APIError, match="SIGKILL"):
            await gathered(completion)


async def test_a_message_that_breaks_off_ends_its_stream_with_an_error(broken):
    async with api(broken) as address, claude(address) as client:
        stream = await client.messages.create(model=NAME, messages=QUESTION, max_tokens=9, stream=True)
        with pytest.raises(anthropic.APIStatusError, match="SIGKILL"):
            await gathered(stream)


def gpt(address: str) -> Any:
    return AsyncOpenAI(base_url=address, api_key="-", max_retries=0)


def claude(address: str) -> Any:
    return AsyncAnthropic(base_url=address.removesuffix("/v1"), api_key="-", max_retries=0)


async def test_a_client_that_leaves_gives_its_slot_back(text):
    session = Scripted(text, tokens_of(text, "Once"), then="hang")
    body = {"model": NAME, "messages": QUESTION, "stream": True}
    async with api(session) as address, aiohttp.ClientSession() as http:
        async with http.post(f"{address}/chat/completions", json=body) as response:
            await response.content.readline()
        async with asyncio.timeout(10):
            await session.ended.acquire()
        # Not streaming: nothing was written that could fail.
        soon = aiohttp.ClientTimeout(total=0.3)
        with pytest.raises(TimeoutError):
            await http.post(f"{address}/chat/completions", json={**body, "stream": False}, timeout=soon)
        async with asyncio.timeout(10):
            await session.ended.acquire()


async def test_a_model_that_is_being_loaded_says_so():
    async with api(Scripted(None, status="loading")) as address:
        async with gpt(address) as client:
            with pytest.raises(openai.InternalServerError, match="being loaded") as caught:
                await client.chat.completions.create(model=NAME, messages=QUESTION)
            assert caught.value.status_code == 503
            assert "Retry-After" in caught.value.response.headers
        async with aiohttp.ClientSession() as http, http.get(f"{address.removesuffix('/v1')}/health") as response:
            assert response.status == 503
            assert (await response.json())["status"] == "loading"


async def test_strangers_need_the_key_and_other_pages_are_turned_away(text):
    async with aiohttp.ClientSession() as http:
        async with api(Scripted(text)) as address:
            url = f"{address}/models"
            assert (await http.get(url)).status == 200
            assert (await http.get(url, headers={"Origin": "http://localhost:3000"})).status == 200
            assert (await http.get(url, headers={"Origin": "https://elsewhere.example"})).status == 403
            assert (await http.get(url, headers={"Host": "rebound.example"})).status == 403
        async with api(Scripted(text), api_key="secret") as address:
            url = f"{address}/models"
            for headers, status in [
                ({}, 401),
                ({"Authorization": "Bearer wrong"}, 401),
                ({"Authorization": "Bearer secret"}, 200),
                ({"x-api-key": "secret"}, 200),
            ]:
                assert (await http.get(url, headers=headers)).status == status
            answer = await http.post(f"{address}/messages", json={})
            assert (await answer.json())["error"]["type"] == "authentication_error"


async def test_other_machines_are_only_let_in_with_a_key(text):
    with pytest.raises(PomonaError, match="needs an API key"):
        await ApiServer(Scripted(text), ApiOptions("0.0.0.0", 0)).open()


async def test_a_port_that_is_taken_is_named_or_another_one_is_used(text):
    async with api(Scripted(text)) as address:
        port = int(address.rpartition(":")[2].removesuffix("/v1"))
        with pytest.raises(PomonaError, match=f"Port {port} on 127.0.0.1 is taken"):
            await ApiServer(Scripted(text), ApiOptions(port=port)).open()
        other = ApiServer(Scripted(text), ApiOptions(port=port, or_any_port=True))
        await other.open()
        assert other.port != port
        await other.close()


def test_the_own_key_stays(tmp_path):
    key = own_api_key(tmp_path / "home")
    assert len(key) > 30
    assert own_api_key(tmp_path / "home") == key
    assert (tmp_path / "home" / "api-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "calls", "content"),
    [
        ('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>', [("f", {"a": 1})], None),
        (
            'Well. <tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>\n<tool_call>{"name": "g"}</tool_call>',
            [("f", {}), ("g", {})],
            "Well. ",
        ),
        ("<tool_call>not JSON</tool_call> so", [], "<tool_call>not JSON</tool_call> so"),
        ("1 < 2, <tool", [], "1 < 2, <tool"),
    ],
)
async def test_what_a_model_says_is_sorted(text, words, calls, content):
    tools = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
    session = Scripted(text, tokens_of(text, words))
    async with api(session) as address, gpt(address) as client:
        answer = await client.chat.completions.create(model=NAME, messages=QUESTION, tools=tools)
        message = answer.choices[0].message
        found = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
        assert found == calls
        assert message.content == content
        assert answer.choices[0].finish_reason == ("tool_calls" if calls else "stop")
        plain = await client.chat.completions.create(model=NAME, messages=QUESTION)  # no tools: text is text
        assert plain.choices[0].message.content == words
        one = await client.chat.completions.create(
            model=NAME, messages=QUESTION, tools=tools, parallel_tool_calls=False
        )
        assert len(one.choices[0].message.tool_calls or ()) == min(len(calls), 1)


async def test_thoughts_end_at_their_limit(text):
    session = Scripted(text, tokens_of(text, "so so so so so so so so"))
    async with api(session) as address, claude(address) as client:
        answer = await client.messages.create(
            model=NAME,
            messages=QUESTION,
            max_tokens=99,
            thinking={"type": "enabled", "budget_tokens": 4},
            output_config={"effort": "high"},
        )
        thoughts, words = answer.content
        assert thoughts.thinking == "so so so so"
        assert words.text == "so so so"  # one gave way to the mark


async def test_strict_tools_are_kept_where_the_model_may_choose(text):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    function = {"name": "f", "parameters": {**schema, "additionalProperties": False}, "strict": True}
    words = 'Hm. <tool_call>{"name": "f", "arguments": {"b": 12}}</tool_call>'
    session = Scripted(text, tokens_of(text, words))
    async with api(session) as address, gpt(address) as client:
        tools = [{"type": "function", "function": function}]
        message = (await client.chat.completions.create(model=NAME, messages=QUESTION, tools=tools)).choices[0].message
        said = (message.content or "") + "".join(call.function.arguments for call in message.tool_calls or ())
        assert said.startswith("Hm. ")
        assert '"b"' not in said
