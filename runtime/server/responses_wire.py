"""``POST /v1/responses``, OpenAI's newer API, as it comes in. Fields that are not here are refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from runtime.server.call import ChatCall, Fields, ToolUse
from runtime.server.chat_turns import arguments_of
from runtime.server.decode import converted, neutral_only
from runtime.server.errors import refused
from runtime.server.wire import (
    Alternatives,
    AnyText,
    Client,
    Count,
    JsonObject,
    Nothing,
    Share,
    Strict,
    Temperature,
    ToolName,
)
from runtime.server.wishes import Wishes

_FIELDS = Fields("input", schema="text.format", effort="reasoning.effort", logprobs="top_logprobs")
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "store": (None, False),
    "background": (None, False),
    "metadata": (None, {}),
    "previous_response_id": (None,),
    "conversation": (None,),
    "prompt": (None,),
    "max_tool_calls": (None,),
}
LOGPROBS = "message.output_text.logprobs"
ENCRYPTED = "reasoning.encrypted_content"
"""Clients that keep no state on a server ask for this. Thoughts are in ``content`` here, as they are."""
Status = Literal["in_progress", "completed", "incomplete"]


class InputText(Strict, frozen=True, tag_field="type", tag="input_text"):
    """Text of a person. Models here read nothing else."""

    text: str


class OutputText(Strict, frozen=True, tag_field="type", tag="output_text"):
    """Text of an earlier answer, as it was given."""

    text: str
    annotations: Nothing | None = None
    logprobs: list[Any] | None = None


class Refusal(Strict, frozen=True, tag_field="type", tag="refusal"):
    """Of an earlier answer."""

    refusal: str


class Item(Strict, frozen=True, tag_field="type", tag="message"):
    """A message."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | tuple[InputText | OutputText | Refusal, ...]
    id: str | None = None
    status: Status | None = None
    phase: str | None = None


class FunctionCallItem(Strict, frozen=True, tag_field="type", tag="function_call"):
    """A call of an earlier turn."""

    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: Status | None = None


class FunctionOutput(Strict, frozen=True, tag_field="type", tag="function_call_output"):
    """What a tool gave back."""

    call_id: str
    output: str | tuple[InputText, ...]
    id: str | None = None
    status: Status | None = None


class ReasoningText(Strict, frozen=True, tag_field="type", tag="reasoning_text"):
    """Thoughts."""

    text: str


class SummaryText(Strict, frozen=True, tag_field="type", tag="summary_text"):
    """What is left of them elsewhere."""

    text: str


class ReasoningItem(Strict, frozen=True, tag_field="type", tag="reasoning"):
    """Thoughts of an earlier turn, as they were given."""

    id: str | None = None
    summary: tuple[SummaryText, ...] = ()
    content: tuple[ReasoningText, ...] | None = None
    encrypted_content: None = None
    status: Status | None = None


AnyItem = Item | FunctionCallItem | FunctionOutput | ReasoningItem


class FunctionSpec(Strict, frozen=True, tag_field="type", tag="function"):
    """A tool that the model may call."""

    name: ToolName
    parameters: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class FunctionChoice(Strict, frozen=True, tag_field="type", tag="function"):
    """The function that has to be called."""

    name: str


class SchemaFormat(Strict, frozen=True, tag_field="type", tag="json_schema"):
    """An answer that fits a schema."""

    name: str
    schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None


class TextConfig(Strict, frozen=True):
    """What the answer looks like."""

    format: AnyText | JsonObject | SchemaFormat | None = None
    verbosity: Literal["medium"] | None = None


class Reasoning(Strict, frozen=True):
    """How the model thinks."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    summary: Literal["auto"] | None = None
    """There is none; thoughts come as they are."""


class StreamOptions(Strict, frozen=True):
    """Of a stream."""

    include_obfuscation: None = None


class ResponsesRequest(Strict, frozen=True):
    """All that is understood. Nothing is stored, so a conversation comes whole each time."""

    model: str
    input: str | Annotated[tuple[dict[str, Any], ...], Meta(min_length=1)]
    instructions: str | None = None
    max_output_tokens: Count | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    top_logprobs: Alternatives | None = None
    include: tuple[Literal["message.output_text.logprobs", "reasoning.encrypted_content"], ...] | None = None
    tools: tuple[FunctionSpec, ...] | None = None
    tool_choice: ToolUse | FunctionChoice | None = None
    parallel_tool_calls: bool | None = None
    text: TextConfig | None = None
    reasoning: Reasoning | None = None
    user: Client | None = None
    safety_identifier: Client | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Literal["in-memory", "in_memory"] | None = None
    service_tier: Literal["auto", "default"] | None = None
    truncation: Literal["disabled"] | None = None
    store: bool | None = None
    background: bool | None = None
    metadata: dict[str, str] | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    prompt: Any = None
    max_tool_calls: int | None = None

    @property
    def wants_logprobs(self) -> bool:
        """Whether probabilities of tokens are told."""
        return LOGPROBS in (self.include or ())

    def call(self) -> ChatCall:
        """What it asks for. Raises :class:`ApiError` for what is understood and not supported."""
        neutral_only(self, _NEUTRAL)
        if self.top_logprobs and not self.wants_logprobs:
            raise refused("top_logprobs", f"'top_logprobs' needs '{LOGPROBS}' in 'include'.")
        choice = self.tool_choice
        config = self.text or TextConfig()
        return ChatCall(
            turns=tuple(self._turns()),
            wishes=Wishes(
                self.temperature, self.top_p, logprobs=(self.top_logprobs or 0) if self.wants_logprobs else -1
            ),
            fields=_FIELDS,
            max_tokens=self.max_output_tokens,
            tools=tuple(map(_tool_dict, self.tools or ())),
            tool_use="auto" if choice is None or isinstance(choice, FunctionChoice) else choice,
            only_tool=choice.name if isinstance(choice, FunctionChoice) else None,
            one_call=self.parallel_tool_calls is False,
            schema=_schema(config),
            effort=self.reasoning.effort if self.reasoning is not None else None,
            client=self.user or self.safety_identifier or "",
        )

    def _turns(self) -> list[dict[str, Any]]:
        """As chat templates know them: calls and thoughts belong to the answer that they came with."""
        found: list[dict[str, Any]] = []
        if self.instructions:
            found.append({"role": "system", "content": self.instructions})
        if isinstance(self.input, str):
            return [*found, {"role": "user", "content": self.input}]
        for index, given in enumerate(self.input):
            place = f"input[{index}]"
            item: AnyItem = converted({"type": "message"} | given, AnyItem, place)
            match item:
                case Item():
                    _add_message(found, item)
                case FunctionCallItem():
                    function = {"name": item.name, "arguments": arguments_of(item.arguments, f"{place}.arguments")}
                    call = {"id": item.call_id, "type": "function", "function": function}
                    _own_turn(found).setdefault("tool_calls", []).append(call)
                case FunctionOutput():
                    output = item.output if isinstance(item.output, str) else "".join(one.text for one in item.output)
                    found.append({"role": "tool", "content": output, "tool_call_id": item.call_id})
                case ReasoningItem():
                    thoughts = "".join(one.text for one in item.content or ())
                    found.append({"role": "assistant", "content": "", "reasoning_content": thoughts})
        return found


def _add_message(found: list[dict[str, Any]], item: Item) -> None:
    if isinstance(item.content, str):
        text = item.content
    else:
        text = "".join(part.refusal if isinstance(part, Refusal) else part.text for part in item.content)
    if item.role == "assistant":
        _own_turn(found)["content"] += text
    else:
        found.append({"role": "system" if item.role == "developer" else item.role, "content": text})


def _own_turn(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The model's turn that is not over, or a new one."""
    if not found or found[-1]["role"] != "assistant":
        found.append({"role": "assistant", "content": ""})
    return found[-1]


def _tool_dict(tool: FunctionSpec) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    for name in ("description", "parameters", "strict"):
        if (value := getattr(tool, name)) is not None:
            function[name] = value
    return {"type": "function", "function": function}


def _schema(config: TextConfig) -> dict[str, Any] | None:
    match config.format:
        case JsonObject():
            return {"type": "object"}
        case SchemaFormat(schema=schema):
            return schema
        case _:
            return None
