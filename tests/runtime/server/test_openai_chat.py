"""The chat API with the ``openai`` package itself, over two ranks."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from tests.runtime.server.serving import PLACE, QUESTION, WAITING

pytestmark = pytest.mark.timeout(300)

ASKED = [{"role": "user", "content": QUESTION}]
STORY = [{"role": "user", "content": "Write a very long story about a fox."}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather at a place",
        "parameters": PLACE,
    },
}


@pytest.fixture
def ask(client, server):
    def ask(messages=ASKED, **options):
        return client.chat.completions.create(
            **{
                "model": server.model,
                "messages": messages,
                "temperature": 0,
                "max_tokens": 16,
                **options,
            }
        )

    return ask


def test_the_model_is_listed(client, server):
    (model,) = client.models.list()
    assert model.id == server.model
    assert client.models.retrieve(server.model).owned_by == "pomona"


def test_an_answer_and_its_stream_are_the_same(ask):
    whole = ask()
    chunks = list(ask(stream=True, stream_options={"include_usage": True}))
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert "Paris" in text
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason


@pytest.mark.matrix
def test_answers_fit_the_published_types_strictly(server):
    body = {
        "model": server.model,
        "messages": ASKED,
        "max_tokens": 4,
        "logprobs": True,
        "top_logprobs": 2,
        "tools": [WEATHER],
        "n": 2,
    }
    ChatCompletion.model_validate_json(server.post("/chat/completions", body).content, strict=True)
    lines = server.post("/chat/completions", {**body, "stream": True}).text.splitlines()
    events = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    for event in events:
        ChatCompletionChunk.model_validate_json(event, strict=True)
    called = server.post("/chat/completions", {**body, "tool_choice": "required", "max_tokens": 40, "n": 1})
    answer = ChatCompletion.model_validate_json(called.content, strict=True)
    assert answer.choices[0].finish_reason == "tool_calls"


@pytest.mark.matrix
def test_the_second_turn_takes_the_first_from_the_caches(ask):
    first = ask(STORY, max_tokens=24)
    turns = [*STORY, {"role": "assistant", "content": first.choices[0].message.content}, *ASKED]
    second = ask(turns, max_tokens=2)
    assert second.usage.prompt_tokens_details.cached_tokens > first.usage.prompt_tokens


@pytest.mark.matrix
def test_a_tool_is_called_and_its_result_read(ask):
    messages = [{"role": "user", "content": "How is the weather in Rome?"}]
    called = ask(messages, tools=[WEATHER], tool_choice="required", max_tokens=60)
    (call,) = called.choices[0].message.tool_calls
    assert called.choices[0].finish_reason == "tool_calls"
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments)["place"] in {"Paris", "Rome"}
    result = {"role": "tool", "tool_call_id": call.id, "content": "It rains."}
    answer = ask([*messages, called.choices[0].message, result], tools=[WEATHER], tool_choice="none")
    assert answer.choices[0].message.content
    named = {"type": "function", "function": {"name": "weather"}}
    chunks = list(ask(messages, tools=[WEATHER], tool_choice=named, max_tokens=60, stream=True))
    streamed = [one for chunk in chunks for one in chunk.choices[0].delta.tool_calls or ()]
    assert [call.function.arguments for call in streamed] == [
        called.choices[0].message.tool_calls[0].function.arguments
    ]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


class Person(BaseModel):
    name: str
    age: int


def test_an_answer_fits_its_schema(client, server):
    parsed = client.chat.completions.parse(
        model=server.model,
        messages=[{"role": "user", "content": "Invent a person. Answer in JSON."}],
        response_format=Person,
        temperature=0,
        max_tokens=200,
    )
    assert isinstance(parsed.choices[0].message.parsed, Person)


@pytest.mark.matrix
def test_an_answer_is_a_json_object(ask):
    schema = {"type": "json_object"}
    answer = ask(response_format=schema, max_tokens=400, frequency_penalty=0.5)
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(answer.choices[0].message.content), dict)
    assert answer.choices[0].message.content.lstrip().startswith("{")


def test_probabilities_of_tokens_are_those_of_the_text(ask):
    answer = ask(logprobs=True, top_logprobs=3)
    tokens = answer.choices[0].logprobs.content
    assert b"".join(bytes(token.bytes) for token in tokens).decode() == answer.choices[0].message.content
    assert len(tokens) == answer.usage.completion_tokens
    for token in tokens:
        assert token.logprob == max(other.logprob for other in token.top_logprobs)
        assert len(token.top_logprobs) == 3
        assert sum(math.exp(other.logprob) for other in token.top_logprobs) < 1.001


def test_a_stop_string_ends_the_answer_before_it(ask, server):
    whole = ask().choices[0].message.content
    assert "Paris" in whole
    stopped = ask(stop=["ris", "never said"])
    assert stopped.choices[0].message.content == whole[: whole.index("ris")]
    assert stopped.choices[0].finish_reason == "stop"
    streamed = ask(stop="ris", stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed) == whole[: whole.index("ris")]


@pytest.mark.matrix
def test_a_seed_repeats_an_answer_and_several_answers_differ(ask):
    options = {"temperature": 1.5, "seed": 7, "n": 3, "max_tokens": 12}
    first, again = ask(STORY, **options), ask(STORY, **options)
    texts = [choice.message.content for choice in first.choices]
    assert texts == [choice.message.content for choice in again.choices]
    assert len(set(texts)) == 3
    assert [choice.index for choice in first.choices] == [0, 1, 2]


@pytest.mark.matrix
def test_biases_and_penalties_change_the_answer(ask):
    plain = ask(logprobs=True)
    first = plain.choices[0].logprobs.content[0].token
    banned = ask(logprobs=True, logit_bias={str(token): -100 for token in range(2000)})
    assert ask(presence_penalty=2, frequency_penalty=2, max_tokens=48) != ask(max_tokens=48)
    assert banned.choices[0].message.content != plain.choices[0].message.content
    assert first


def test_thoughts_come_apart(ask):
    # The weights know nothing of thoughts, so they are kept from ending them at once.
    options = {"extra_body": {"chat_template_kwargs": {"thinks": True}, "ignore_eos": True}, "logit_bias": {5: -100}}
    answer = ask(**options, max_tokens=8)
    message = answer.choices[0].message
    assert message.model_extra["reasoning_content"]
    assert message.content == ""
    assert answer.usage.completion_tokens_details.reasoning_tokens == 8
    streamed = ask(**options, max_tokens=8, stream=True)
    thoughts = "".join((chunk.choices[0].delta.model_extra or {}).get("reasoning_content", "") for chunk in streamed)
    assert thoughts == message.model_extra["reasoning_content"]


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"temperature": 9}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"extra_body": {"colour": "red"}}, "colour"),
        ({"messages": [{"role": "user", "content": "x", "shape": 1}]}, "messages[0].shape"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].type"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": "word " * 9000}]}, "messages"),
        ({"store": True}, "store"),
        ({"logit_bias": {"99999999": 1}}, "logit_bias"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"stop": ""}, "stop"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "objekt"}}}},
            "response_format",
        ),
    ],
)
def test_what_is_wrong_is_named(ask, options, param):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(**options)
    assert caught.value.param == param
    assert param.rsplit(".", maxsplit=1)[-1].partition("[")[0] in caught.value.message


def test_errors_are_the_packages_own(ask, server):
    with pytest.raises(openai.NotFoundError) as unknown:
        ask(model="another")
    assert unknown.value.code == "model_not_found"
    assert server.model in unknown.value.message
    stranger = OpenAI(base_url=server.address, api_key="wrong", max_retries=0)
    with stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    with pytest.raises(openai.APIStatusError) as large:
        ask([{"role": "user", "content": "x" * (17 << 20)}])
    assert large.value.status_code == 413


@pytest.mark.matrix
def test_too_many_requests_are_told_to_come_back_and_clients_that_leave_make_room(ask, server):
    with ExitStack() as stack:
        for _ in range(WAITING):
            stream = stack.enter_context(ask(STORY, max_tokens=2000, stream=True))
            next(iter(stream))
        with pytest.raises(openai.RateLimitError) as caught:
            ask()
        assert int(caught.value.response.headers["Retry-After"]) > 0
        assert server.health()["active_requests"] == WAITING
    server.wait_until_idle()
    assert "Paris" in ask().choices[0].message.content
