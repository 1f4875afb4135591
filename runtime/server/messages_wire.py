"""``POST /v1/messages``, Anthropic's API, as it comes in. Fields that are not here are refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from runtime.server.call import ChatCall, Fields, ToolUse
from runtime.server.errors import refused
from runtime.server.wire import Client, Count, Likelihood, Share, Stops, Strict, ToolName, TopK
from runtime.server.wishes import Wishes

_FIELDS = Fields(schema="output_config.format", effort="thinking")


class CacheControl(Strict, frozen=True):
    """Where a client would like a prompt to be cached. Here everything that begins alike is."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class TextBlock(Strict, frozen=True, tag_field="type", tag="text"):
    """Text. Models here read nothing else."""

    text: str
    cache_control: CacheControl | None = None
    citations: None = None


class ToolUseBlock(Strict, frozen=True, tag_field="type", tag="tool_use"):
    """A call of an earlier turn."""

    id: str
    name: str
    input: dict[str, Any]
    cache_control: CacheControl | None = None
    caller: None = None


class ToolResultBlock(Strict, frozen=True, tag_field="type", tag="tool_result"):
    """What a tool gave back."""

    tool_use_id: str
    content: str | tuple[TextBlock, ...] | None = None
    is_error: bool | None = None
    cache_control: CacheControl | None = None


class ThinkingBlock(Strict, frozen=True, tag_field="type", tag="thinking"):
    """Thoughts of an earlier turn."""

    thinking: str
    signature: str = ""


UserBlock = TextBlock | ToolResultBlock
AssistantBlock = TextBlock | ToolUseBlock | ThinkingBlock


class UserMessage(Strict, frozen=True, tag_field="role", tag="user"):
    """What a person says, and what tools gave back."""

    content: str | Annotated[tuple[UserBlock, ...], Meta(min_length=1)]


class AssistantMessage(Strict, frozen=True, tag_field="role", tag="assistant"):
    """What the model said. As the last message it is gone on with."""

    content: str | tuple[AssistantBlock, ...]


class ToolSpec(Strict, frozen=True):
    """A tool that the model may call."""

    name: ToolName
    input_schema: dict[str, Any]
    description: str | None = None
    type: Literal["custom"] | None = None
    strict: bool | None = None
    cache_control: CacheControl | None = None


class AutoTool(Strict, frozen=True, tag_field="type", tag="auto"):
    """The model calls if it wants to."""

    disable_parallel_tool_use: bool = False


class AnyTool(Strict, frozen=True, tag_field="type", tag="any"):
    """The model has to call one."""

    disable_parallel_tool_use: bool = False


class OneTool(Strict, frozen=True, tag_field="type", tag="tool"):
    """The model has to call this one."""

    name: str
    disable_parallel_tool_use: bool = False


class NoTool(Strict, frozen=True, tag_field="type", tag="none"):
    """The model calls none."""


class ThinkingOn(Strict, frozen=True, tag_field="type", tag="enabled"):
    """The model thinks first, for at most so many tokens."""

    budget_tokens: Count


class ThinkingAdaptive(Strict, frozen=True, tag_field="type", tag="adaptive"):
    """The model thinks as it does by itself."""


class ThinkingOff(Strict, frozen=True, tag_field="type", tag="disabled"):
    """It does not."""


class SchemaFormat(Strict, frozen=True):
    """The answer is JSON that fits a schema."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(Strict, frozen=True):
    """What the answer looks like."""

    format: SchemaFormat | None = None
    effort: Literal["low", "medium", "high", "max"] | None = None


class KeepThinking(Strict, frozen=True, tag_field="type", tag="clear_thinking_20251015"):
    """What to leave out of a long chat. Here everything stays, so that is all that can be asked for."""

    keep: Literal["all"]


class ContextManagement(Strict, frozen=True):
    """How a chat that grows long is cut."""

    edits: tuple[KeepThinking, ...] = ()


class Metadata(Strict, frozen=True):
    """Who asks."""

    user_id: Client | None = None


class MessagesRequest(Strict, frozen=True):
    """All that is understood."""

    model: str
    messages: Annotated[tuple[UserMessage | AssistantMessage, ...], Meta(min_length=1)]
    max_tokens: Count
    system: str | tuple[TextBlock, ...] | None = None
    stream: bool | None = None
    stop_sequences: Stops | None = None
    temperature: Likelihood | None = None
    top_p: Share | None = None
    top_k: TopK | None = None
    tools: tuple[ToolSpec, ...] | None = None
    tool_choice: AutoTool | AnyTool | OneTool | NoTool | None = None
    thinking: ThinkingOn | ThinkingAdaptive | ThinkingOff | None = None
    output_config: OutputConfig | None = None
    context_management: ContextManagement | None = None
    metadata: Metadata | None = None
    cache_control: CacheControl | None = None
    service_tier: Literal["auto", "standard_only"] | None = None

    def call(self) -> ChatCall:
        """What it asks for. Raises :class:`ApiError`."""
        if "" in (self.stop_sequences or ()):
            raise refused("stop_sequences", "Invalid 'stop_sequences': an empty string ends nothing.")
        choice, config = self.tool_choice, self.output_config or OutputConfig()
        uses: dict[type, ToolUse] = {AnyTool: "required", NoTool: "none"}
        last = self.messages[-1]
        return ChatCall(
            turns=tuple(turns(self)),
            wishes=Wishes(self.temperature, self.top_p, self.top_k),
            fields=_FIELDS,
            max_tokens=self.max_tokens,
            stops=self.stop_sequences or (),
            tools=tuple(map(_tool_dict, self.tools or ())),
            tool_use=uses.get(type(choice), "auto"),
            only_tool=choice.name if isinstance(choice, OneTool) else None,
            one_call=isinstance(choice, AutoTool | AnyTool | OneTool) and choice.disable_parallel_tool_use,
            schema=config.format.schema if config.format is not None else None,
            thinks=_thinks(self.thinking),
            thinking_tokens=self.thinking.budget_tokens if isinstance(self.thinking, ThinkingOn) else None,
            effort="high" if config.effort == "max" else config.effort,
            continues=isinstance(last, AssistantMessage),
            client=(self.metadata.user_id if self.metadata is not None else None) or "",
        )


class CountRequest(MessagesRequest, frozen=True, kw_only=True):
    """``POST /v1/messages/count_tokens``: the same without a length."""

    max_tokens: Count = 1


def turns(request: MessagesRequest) -> list[dict[str, Any]]:
    """As chat templates know them: what tools gave back are turns of their own."""
    found: list[dict[str, Any]] = []
    if request.system:
        found.append({"role": "system", "content": _text(request.system)})
    for message in request.messages:
        if isinstance(message.content, str):
            role = "user" if isinstance(message, UserMessage) else "assistant"
            found.append({"role": role, "content": message.content})
        elif isinstance(message, UserMessage):
            found += _user_turns(message.content)
        else:
            found.append(_assistant_turn(message.content))
    return found


def _user_turns(blocks: tuple[UserBlock, ...] | str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for block in blocks:
        if isinstance(block, ToolResultBlock):
            content = _text(block.content or "")
            found.append({"role": "tool", "content": content, "tool_call_id": block.tool_use_id})
        elif isinstance(block, TextBlock) and found and found[-1]["role"] == "user":
            found[-1]["content"] += block.text
        elif isinstance(block, TextBlock):
            found.append({"role": "user", "content": block.text})
    return found


def _assistant_turn(blocks: tuple[AssistantBlock, ...] | str) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": "assistant", "content": ""}
    for block in blocks:
        if isinstance(block, TextBlock):
            turn["content"] += block.text
        elif isinstance(block, ThinkingBlock):
            turn["reasoning_content"] = turn.get("reasoning_content", "") + block.thinking
        elif isinstance(block, ToolUseBlock):
            function = {"name": block.name, "arguments": block.input}
            turn.setdefault("tool_calls", []).append({"id": block.id, "type": "function", "function": function})
    return turn


def _text(content: str | tuple[TextBlock, ...]) -> str:
    return content if isinstance(content, str) else "".join(block.text for block in content)


def _tool_dict(tool: ToolSpec) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "parameters": tool.input_schema}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _thinks(thinking: ThinkingOn | ThinkingAdaptive | ThinkingOff | None) -> bool | None:
    match thinking:
        case ThinkingOn():
            return True
        case ThinkingOff():
            return False
        case _:
            return None
