"""``POST /v1/chat/completions`` as it comes in. Decoding validates; fields that are not here are refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from runtime.server.call import ChatCall, Fields, ToolUse
from runtime.server.chat_turns import AnyMessage, turn
from runtime.server.decode import neutral_only
from runtime.server.errors import refused
from runtime.server.wire import Alternatives, AnyText, Chosen, Client, Count, JsonObject, Strict, ToolName

_OWN_OPTIONS = frozenset(
    {
        "add_generation_prompt",
        "chat_template",
        "continue_final_message",
        "conversation",
        "documents",
        "max_length",
        "padding",
        "return_assistant_tokens_mask",
        "return_dict",
        "return_tensors",
        "tokenize",
        "tokenizer_kwargs",
        "tools",
        "truncation",
    }
)
"""Of ``apply_chat_template`` itself, not of a template."""
_NEUTRAL: dict[str, tuple[Any, ...]] = {"store": (None, False), "metadata": (None, {})}


class Function(Strict, frozen=True):
    """A tool: what it is called, what it is for, and what it takes, as a JSON schema."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Strict, frozen=True):
    """A function that the model may call."""

    function: Function
    type: Literal["function"] = "function"


class FunctionName(Strict, frozen=True):
    """The function that has to be called."""

    name: str


class NamedTool(Strict, frozen=True):
    """The same as a choice."""

    function: FunctionName
    type: Literal["function"] = "function"


class NamedSchema(Strict, frozen=True):
    """A JSON schema. It is always kept, whatever ``strict`` says."""

    name: str
    schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None


class JsonSchema(Strict, frozen=True, tag_field="type", tag="json_schema"):
    """An answer that fits a schema."""

    json_schema: NamedSchema


class ChatRequest(Chosen, frozen=True, kw_only=True):
    """All that is understood.

    ``top_k``, ``min_p``, ``repetition_penalty``, ``chat_template_kwargs`` and ``ignore_eos`` are no fields of OpenAI's;
    other servers have them by these names.
    """

    model: str
    messages: Annotated[tuple[AnyMessage, ...], Meta(min_length=1)]
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Alternatives | None = None
    tools: tuple[Tool, ...] | None = None
    tool_choice: ToolUse | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: AnyText | JsonObject | JsonSchema | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    user: Client | None = None
    safety_identifier: Client | None = None
    prompt_cache_key: str | None = None
    """What begins alike is computed once anyway."""
    prompt_cache_retention: Literal["in-memory", "in_memory"] | None = None
    service_tier: Literal["auto", "default"] | None = None
    modalities: tuple[Literal["text"], ...] | None = None
    verbosity: Literal["medium"] | None = None
    store: bool | None = None
    metadata: dict[str, str] | None = None

    def call(self) -> ChatCall:
        """What it asks for. Raises :class:`ApiError` for what is understood and not supported."""
        neutral_only(self, _NEUTRAL)
        self.check_stream()
        if self.top_logprobs is not None and not self.logprobs:
            raise refused("top_logprobs", "'top_logprobs' needs 'logprobs' to be true.")
        if taken := _OWN_OPTIONS & (self.chat_template_kwargs or {}).keys():
            raise refused("chat_template_kwargs", f"'chat_template_kwargs' may not set '{min(taken)}'.")
        choice = self.tool_choice
        return ChatCall(
            turns=tuple(turn(message, place) for place, message in enumerate(self.messages)),
            wishes=self.wishes((self.top_logprobs or 0) if self.logprobs else -1),
            fields=Fields(),
            max_tokens=self.max_completion_tokens or self.max_tokens,
            stops=self.stop_strings,
            tools=tuple(msgspec.to_builtins(tool_dict(tool)) for tool in self.tools or ()),
            tool_use="auto" if choice is None or isinstance(choice, NamedTool) else choice,
            only_tool=choice.function.name if isinstance(choice, NamedTool) else None,
            one_call=self.parallel_tool_calls is False,
            schema=_schema(self.response_format),
            effort=self.reasoning_effort,
            template_options=self.chat_template_kwargs or {},
            count=self.n or 1,
            client=self.user or self.safety_identifier or "",
            ignore_eos=bool(self.ignore_eos),
        )


def tool_dict(tool: Tool) -> dict[str, Any]:
    """As chat templates know tools; what was not given is left out."""
    function = {name: value for name, value in msgspec.structs.asdict(tool.function).items() if value is not None}
    return {"type": "function", "function": function}


def _schema(response_format: AnyText | JsonObject | JsonSchema | None) -> dict[str, Any] | None:
    match response_format:
        case JsonObject():
            return {"type": "object"}
        case JsonSchema(named):
            return named.schema
        case _:
            return None
