"""A chat as any of the three chat APIs asks for it, and how it becomes prompt, sampling and grammar."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from runtime.errors import PomonaError
from runtime.server.ask import Ask
from runtime.server.errors import refused, unsupported
from runtime.server.guides import GrammarGuide, ThinkingGuide, call_grammar, check_grammar, schema_grammar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runtime.cluster.answers import Guide
    from runtime.cluster.text import ModelText, Turn
    from runtime.server.model import Model
    from runtime.server.vocabulary import Vocabulary
    from runtime.server.wishes import Wishes

ToolUse = Literal["auto", "none", "required"]
_JSON_CALLS = "json_tools"
"""mlx-lm's name for the form in which a call is one JSON object between two marks."""


@dataclass(frozen=True, slots=True)
class Fields:
    """What each API calls the fields that may be refused here."""

    messages: str = "messages"
    tools: str = "tools"
    tool_choice: str = "tool_choice"
    schema: str = "response_format"
    effort: str = "reasoning_effort"
    bias: str = "logit_bias"
    logprobs: str = "logprobs"


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A chat that wants an answer."""

    turns: tuple[Turn, ...]
    wishes: Wishes
    fields: Fields
    max_tokens: int | None = None
    stops: tuple[str, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    """In OpenAI's form."""
    tool_use: ToolUse = "auto"
    only_tool: str | None = None
    """The one that has to be called."""
    one_call: bool = False
    schema: Mapping[str, Any] | None = None
    """The answer is JSON that fits it."""
    thinks: bool | None = None
    """None is as the model does by itself."""
    effort: str | None = None
    thinking_tokens: int | None = None
    """After so many the thoughts are ended."""
    continues: bool = False
    """Whether the last turn is the model's own, which goes on."""
    template_options: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1
    client: str = ""
    ignore_eos: bool = False

    async def ask(self, model: Model) -> tuple[Ask, Vocabulary | None]:
        """What the driver is asked, and the vocabulary if it is needed. Raises :class:`ApiError`."""
        text = model.text()
        self._check_tools(text)
        options = self._template_options(text)
        tools = () if self.tool_use == "none" else self._used_tools()
        try:
            prompt = await asyncio.to_thread(text.render, self.turns, tools, options, continues=self.continues)
        except PomonaError as error:
            raise refused(self.fields.messages, str(error)) from error
        sampling = self.wishes.sampling(text, self.fields.bias)
        max_tokens = model.answer_tokens(len(prompt), self.max_tokens, self.fields.messages)
        guided_by = self._guided_by()
        vocabulary = None
        if guided_by or sampling.logprobs >= 0:
            vocabulary = await model.vocabulary(guided_by or self.fields.logprobs)
        new_guide = await self._guide(text, vocabulary, prompt, guided_by) if guided_by and vocabulary else None
        if self.thinking_tokens is not None:
            new_guide = partial(self._thinking_guide, text, prompt, self.thinking_tokens, new_guide)
        ask = Ask(
            prompt,
            sampling,
            max_tokens,
            () if self.ignore_eos else text.end_tokens,
            self.stops,
            self.count,
            self.client,
            goes_on=self.continues,
            tools=tools,
            one_call=self.one_call or self.only_tool is not None,
            new_guide=new_guide,
        )
        return ask, vocabulary

    # Tools --------------------------------------------------------------------------------------------------------

    def _check_tools(self, text: ModelText) -> None:
        names = [tool["function"]["name"] for tool in self.tools]
        if self.tools and not text.has_tools:
            param = self.fields.tools
            raise unsupported(param, f"'{param}' are not supported with this model: its chat template knows none.")
        if self.only_tool is not None and self.only_tool not in names:
            raise refused(self.fields.tool_choice, f"'{self.fields.tool_choice}' names no tool: '{self.only_tool}'.")
        if self.tool_use == "required" and not names:
            raise refused(self.fields.tool_choice, f"'{self.fields.tool_choice}' wants a call, and there are no tools.")
        if self.schema is not None and self._must_call:
            raise refused(self.fields.schema, f"'{self.fields.schema}' cannot be kept by an answer that is a call.")

    @property
    def _must_call(self) -> bool:
        return self.tool_use == "required" or self.only_tool is not None

    def _used_tools(self) -> tuple[dict[str, Any], ...]:
        if self.only_tool is None:
            return self.tools
        return tuple(tool for tool in self.tools if tool["function"]["name"] == self.only_tool)

    # Thinking -----------------------------------------------------------------------------------------------------

    def _template_options(self, text: ModelText) -> dict[str, Any]:
        options = dict(self.template_options)
        wants_effort = self.effort not in {None, "none"}
        if (wants_effort or self.thinks) and not text.has_thinking and not text.template_knows("reasoning_effort"):
            param = self.fields.effort
            raise unsupported(param, f"'{param}' is not supported with this model, which does not think aloud.")
        if self.effort is not None and text.template_knows("reasoning_effort"):
            options["reasoning_effort"] = self.effort
        if self.thinks is not None or self.effort is not None:
            options["enable_thinking"] = wants_effort if self.thinks is None else self.thinks
        return options

    # Grammars -----------------------------------------------------------------------------------------------------

    def _guided_by(self) -> str:
        """The field that wants a grammar; empty if none does."""
        if self._must_call:
            return self.fields.tool_choice
        if self.schema is not None:
            return self.fields.schema
        strict = any(tool["function"].get("strict") for tool in self.tools) and self.tool_use != "none"
        return self.fields.tools if strict else ""

    async def _guide(
        self, text: ModelText, vocabulary: Vocabulary, prompt: tuple[int, ...], param: str
    ) -> Callable[[], Guide]:
        """Makes a guide for each answer; thoughts that come before it are free."""
        thought_end = ""
        if text.has_thinking and text.speech(prompt, with_calls=False).thinking:
            thought_end = text.tokenizer.think_end
        if self.schema is not None:
            grammar = schema_grammar(self.schema)
            new_guide = partial(GrammarGuide, grammar, vocabulary, text, after=thought_end)
        else:
            begin, end = self._call_marks(text, param)
            if self._must_call:
                grammar = call_grammar(self._used_tools(), begin, end, vocabulary)
                new_guide = partial(GrammarGuide, grammar, vocabulary, text, after=thought_end)
            else:
                grammar = call_grammar(self._used_tools(), "", end, vocabulary)
                new_guide = partial(GrammarGuide, grammar, vocabulary, text, after=begin, repeats=True)
        try:
            await asyncio.to_thread(check_grammar, grammar, vocabulary)
        except PomonaError as error:
            raise refused(param, f"Invalid '{param}': the schema cannot be used ({error}).") from error
        return new_guide

    @staticmethod
    def _thinking_guide(
        text: ModelText, prompt: tuple[int, ...], limit_tokens: int, then: Callable[[], Guide] | None
    ) -> Guide:
        speech = text.speech(prompt, with_calls=False)
        end = text.tokenizer.think_end_tokens
        return ThinkingGuide(speech, text.streamer(), end, limit_tokens, then() if then is not None else None)

    @staticmethod
    def _call_marks(text: ModelText, param: str) -> tuple[str, str]:
        if text.tokenizer.init_kwargs.get("tool_parser_type") != _JSON_CALLS:
            raise unsupported(param, f"'{param}' cannot be enforced with this model's form of tool calls.")
        return text.tokenizer.tool_call_start, text.tokenizer.tool_call_end
