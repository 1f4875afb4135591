"""The messages of OpenAI's chat API, and how they become what chat templates read."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from runtime.server.errors import refused
from runtime.server.wire import Nothing, Strict


class TextPart(Strict, frozen=True, tag_field="type", tag="text"):
    """A piece of a message. Models here read text alone."""

    text: str


class RefusalPart(Strict, frozen=True, tag_field="type", tag="refusal"):
    """Of an earlier answer."""

    refusal: str


Content = str | tuple[TextPart, ...]


class FunctionCall(Strict, frozen=True):
    """What was called, with arguments as JSON."""

    name: str
    arguments: str


class ToolCall(Strict, frozen=True):
    """A call of an earlier turn."""

    id: str
    function: FunctionCall
    type: Literal["function"] = "function"
    index: int = 0


class System(Strict, frozen=True, tag_field="role", tag="system"):
    """What the model is to be."""

    content: Content
    name: str | None = None


class Developer(Strict, frozen=True, tag_field="role", tag="developer"):
    """The newer name of ``system``."""

    content: Content
    name: str | None = None


class User(Strict, frozen=True, tag_field="role", tag="user"):
    """What a person says."""

    content: Content
    name: str | None = None


class Assistant(Strict, frozen=True, tag_field="role", tag="assistant"):
    """What the model said; with the empty fields of OpenAI's own answers, which clients send back."""

    content: str | tuple[TextPart | RefusalPart, ...] | None = None
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    annotations: Nothing | None = None
    audio: None = None
    function_call: None = None


class ToolResult(Strict, frozen=True, tag_field="role", tag="tool"):
    """What a tool gave back."""

    content: Content
    tool_call_id: str
    name: str | None = None


AnyMessage = System | Developer | User | Assistant | ToolResult


def turn(message: AnyMessage, place: int) -> dict[str, Any]:
    """As chat templates know turns."""
    its: dict[str, Any]
    if isinstance(message, Assistant):
        its = {"role": "assistant", "content": joined(message.content or message.refusal or "")}
        if message.tool_calls:
            its["tool_calls"] = [_called(call, place, index) for index, call in enumerate(message.tool_calls)]
        if thoughts := message.reasoning_content or message.reasoning:
            its["reasoning_content"] = thoughts
    elif isinstance(message, ToolResult):
        its = {"role": "tool", "content": joined(message.content), "tool_call_id": message.tool_call_id}
    else:
        its = {"role": "user" if isinstance(message, User) else "system", "content": joined(message.content)}
    if message.name is not None:
        its["name"] = message.name
    return its


def joined(content: str | tuple[TextPart | RefusalPart, ...]) -> str:
    """The text of a message."""
    if isinstance(content, str):
        return content
    return "".join(part.text if isinstance(part, TextPart) else part.refusal for part in content)


def arguments_of(text: str, param: str) -> dict[str, Any]:
    """The arguments of an earlier call, which templates write in their own way."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise refused(param, f"Invalid '{param}': no JSON object ({error}).") from error


def _called(call: ToolCall, place: int, index: int) -> dict[str, Any]:
    param = f"messages[{place}].tool_calls[{index}].function.arguments"
    function = {"name": call.function.name, "arguments": arguments_of(call.function.arguments, param)}
    return {"id": call.id, "type": "function", "function": function}
