"""Completions, responses and Anthropic's messages with their own packages, over two ranks."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest
from anthropic import Anthropic
from anthropic.types import Message, RawMessageStreamEvent
from openai.types import Completion
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.runtime.server.serving import KEY, PLACE, QUESTION

pytestmark = pytest.mark.timeout(300)

BEGINNING = "The capital of France is"


@pytest.fixture
def claude(server):
    with Anthropic(base_url=server.address.removesuffix("/v1"), api_key=KEY, max_retries=0) as claude:
        yield claude


def events(text: str) -> list[str]:
    return [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]


# Completions ------------------------------------------------------------------------------------------------------


@pytest.mark.matrix
def test_a_text_is_gone_on_with(client, server):
    options = {"model": server.model, "temperature": 0, "max_tokens": 8}
    whole = client.completions.create(prompt=BEGINNING, logprobs=2, **options)
    raw = server.post("/completions", {**options, "prompt": BEGINNING, "logprobs": 2})
    Completion.model_validate_json(raw.content, strict=True)
    choice = whole.choices[0]
    assert "".join(choice.logprobs.tokens) == choice.text
    assert choice.logprobs.text_offset[1] == len(choice.logprobs.tokens[0])
    assert len(choice.logprobs.top_logprobs[0]) == 2
    streamed = client.completions.create(prompt=BEGINNING, stream=True, **options)
    assert "".join(chunk.choices[0].text for chunk in streamed) == choice.text
    several = client.completions.create(prompt=[BEGINNING, "One, two,"], n=2, **options)
    assert [one.index for one in several.choices] == [0, 1, 2, 3]
    assert several.choices[0].text == several.choices[1].text == choice.text
    assert several.usage.completion_tokens == 32
    by_tokens = client.completions.create(prompt=[1, 2, 3], extra_body={"ignore_eos": True}, **options)
    assert by_tokens.usage.prompt_tokens == 3
    assert by_tokens.usage.completion_tokens == 8
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(prompt=[1, 10**7], **options)
    assert caught.value.param == "prompt"


# Responses --------------------------------------------------------------------------------------------------------


def test_a_response_and_its_stream(client, server):
    options = {"model": server.model, "input": QUESTION, "temperature": 0, "max_output_tokens": 16}
    whole = client.responses.create(**options)
    assert "Paris" in whole.output_text
    assert whole.status in {"completed", "incomplete"}
    with client.responses.stream(**options) as stream:
        for _ in stream:
            pass
        final = stream.get_final_response() if whole.status == "completed" else None
    if final is not None:
        assert final.output_text == whole.output_text
    Response.model_validate_json(server.post("/responses", options).content, strict=True)
    raw = events(server.post("/responses", {**options, "stream": True}).text)
    adapter: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
    parsed = [adapter.validate_json(event, strict=True) for event in raw]
    assert [event.sequence_number for event in parsed] == list(range(len(parsed)))
    assert parsed[-1].type == f"response.{whole.status}"
    text = "".join(event.delta for event in parsed if event.type == "response.output_text.delta")
    assert text == whole.output_text


@pytest.mark.matrix
def test_a_response_calls_a_tool_and_reads_its_result(client, server):
    tool = {"type": "function", "name": "weather", "parameters": PLACE, "strict": True}
    asked = {"role": "user", "content": "How is the weather in Rome?"}
    options = {"model": server.model, "tools": [tool], "temperature": 0}
    called = client.responses.create(input=[asked], tool_choice="required", max_output_tokens=60, **options)
    (call,) = called.output
    assert call.type == "function_call"
    assert json.loads(call.arguments)["place"] in {"Paris", "Rome"}
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "It rains."}
    answer = client.responses.create(
        input=[asked, call.model_dump(exclude_none=True), result], tool_choice="none", max_output_tokens=8, **options
    )
    assert answer.output_text
    raw = server.post(
        "/responses", {**options, "input": [asked], "tool_choice": "required", "max_output_tokens": 60, "stream": True}
    )
    adapter: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
    kinds = [adapter.validate_json(event, strict=True).type for event in events(raw.text)]
    assert "response.function_call_arguments.done" in kinds
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=server.model, input=QUESTION, previous_response_id="resp_1")
    assert caught.value.param == "previous_response_id"


# Messages ---------------------------------------------------------------------------------------------------------


def test_a_message_and_its_stream(claude, server):
    options = {"model": server.model, "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 16}
    greedy = {**options, "extra_body": {"temperature": 0}}
    whole = claude.messages.create(**greedy)
    assert "Paris" in whole.content[0].text
    assert whole.usage.input_tokens + whole.usage.cache_read_input_tokens > 10
    with claude.messages.stream(**greedy) as stream:
        assert "".join(stream.text_stream) == whole.content[0].text
        final = stream.get_final_message()
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens
    Message.model_validate_json(server.post("/messages", options).content, strict=True)
    adapter: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)
    raw = events(server.post("/messages", {**options, "stream": True}).text)
    kinds = [adapter.validate_json(event, strict=True).type for event in raw]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    counted = claude.messages.count_tokens(model=server.model, messages=options["messages"])
    assert counted.input_tokens == whole.usage.input_tokens + whole.usage.cache_read_input_tokens


def test_a_message_ends_at_a_stop_sequence_and_goes_on_with_a_beginning(claude, server):
    options = {"model": server.model, "max_tokens": 16, "extra_body": {"temperature": 0}}
    question = {"role": "user", "content": QUESTION}
    stopped = claude.messages.create(messages=[question], stop_sequences=["Paris"], **options)
    assert stopped.stop_reason == "stop_sequence"
    assert stopped.stop_sequence == "Paris"
    begun = [question, {"role": "assistant", "content": BEGINNING}]
    assert claude.messages.create(messages=begun, **options).content[0].text.startswith(" Paris")


@pytest.mark.matrix
def test_a_message_calls_a_tool_and_reads_its_result(claude, server):
    tool = {"name": "weather", "description": "The weather at a place", "input_schema": PLACE}
    asked = {"role": "user", "content": "How is the weather in Rome?"}
    options = {"model": server.model, "max_tokens": 60, "tools": [tool], "extra_body": {"temperature": 0}}
    called = claude.messages.create(messages=[asked], tool_choice={"type": "any"}, **options)
    assert called.stop_reason == "tool_use"
    (call,) = [block for block in called.content if block.type == "tool_use"]
    assert call.input["place"] in {"Paris", "Rome"}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "It rains."}]}
    turns = [asked, {"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
    answer = claude.messages.create(messages=turns, tool_choice={"type": "none"}, **{**options, "max_tokens": 8})
    assert answer.content[0].type == "text"
    with claude.messages.stream(messages=[asked], tool_choice={"type": "tool", "name": "weather"}, **options) as stream:
        streamed = stream.get_final_message()
    assert [block.input for block in streamed.content if block.type == "tool_use"] == [call.input]


def test_errors_are_the_packages_own(claude, server):
    message: Any = {"role": "user", "content": QUESTION}
    with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\]\.content\[0\]\.type"):
        claude.messages.create(
            model=server.model, max_tokens=5, messages=[{"role": "user", "content": [{"type": "image", "source": {}}]}]
        )
    with pytest.raises(anthropic.NotFoundError, match="another"):
        claude.messages.create(model="another", max_tokens=5, messages=[message])
    stranger = Anthropic(base_url=server.address.removesuffix("/v1"), api_key="wrong", max_retries=0)
    with stranger, pytest.raises(anthropic.AuthenticationError):
        stranger.messages.create(model=server.model, max_tokens=5, messages=[message])


# Around them ------------------------------------------------------------------------------------------------------


def test_health_and_metrics_count(server):
    health = server.health()
    assert health["status"] == "ok"
    assert [rank["phase"] for rank in health["ranks"]] == ["ready", "ready"]
    metrics = server.get("/metrics").text
    assert "pomona_up 1.0" in metrics
    assert 'pomona_rank_steps_total{node="Apricot",rank="0"}' in metrics
    assert "pomona_time_to_first_token_seconds_bucket" in metrics
