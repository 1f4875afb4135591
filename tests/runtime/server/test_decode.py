"""Requests from bytes: whatever comes, it is a request or one sentence with the field's name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.server.chat_wire import ChatRequest
from runtime.server.completions import CompletionRequest
from runtime.server.decode import decode
from runtime.server.errors import ApiError
from runtime.server.messages_wire import MessagesRequest
from runtime.server.responses_wire import ResponsesRequest

KINDS = [ChatRequest, CompletionRequest, MessagesRequest, ResponsesRequest]
CALLS = (ChatRequest, MessagesRequest, ResponsesRequest)
VALID: dict[Any, dict[str, Any]] = {
    ChatRequest: {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    CompletionRequest: {"model": "m", "prompt": "hi"},
    MessagesRequest: {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]},
    ResponsesRequest: {"model": "m", "input": [{"role": "user", "content": "hi"}]},
}
FIELDS = sorted({name for kind in KINDS for name in kind.__struct_fields__} | {"role", "content", "type", "text"})
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner, max_size=4),
    max_leaves=12,
)


def read(kind: Any, body: bytes) -> Any:
    """The call of a request; :class:`ApiError` is all that may come instead."""
    request = decode(body, kind)
    return request.call() if isinstance(request, CALLS) else request


def taken(kind: Any, body: bytes) -> None:
    refusal = refusal_of(kind, body)
    if refusal is not None:
        assert refusal.status == 400
        assert refusal.message.endswith(".")


def refusal_of(kind: Any, body: bytes) -> ApiError | None:
    try:
        read(kind, body)
    except ApiError as error:
        return error
    return None


@pytest.mark.parametrize("kind", KINDS)
@given(body=st.binary(max_size=64))
def test_no_bytes_break_it(kind, body):
    taken(kind, body)


@pytest.mark.parametrize("kind", KINDS)
@given(changes=st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=3))
def test_no_field_breaks_it(kind, changes):
    taken(kind, json.dumps({**VALID[kind], **changes}).encode())


@pytest.mark.parametrize("kind", CALLS)
@given(item=json_values)
def test_no_message_breaks_it(kind, item):
    name = "input" if kind is ResponsesRequest else "messages"
    taken(kind, json.dumps({**VALID[kind], name: [item]}).encode())


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_valid_is_read_and_what_is_unknown_is_named(kind):
    assert read(kind, json.dumps(VALID[kind]).encode())
    with pytest.raises(ApiError, match="'colour'") as caught:
        read(kind, json.dumps({**VALID[kind], "colour": "red"}).encode())
    assert caught.value.param == "colour"


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"model": "\\ud800"}', b"", b"\xff"])
def test_what_is_no_json_is_said(body):
    with pytest.raises(ApiError, match=r"JSON|nested|Expected"):
        read(ChatRequest, body)


def test_a_value_in_a_table_is_named_by_its_table():
    with pytest.raises(ApiError) as caught:
        read(ChatRequest, json.dumps({**VALID[ChatRequest], "logit_bias": {"5": "much"}}).encode())
    assert caught.value.param == "logit_bias"
