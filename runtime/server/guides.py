"""Answers that follow a grammar: JSON, a JSON schema, a call of a tool. The grammars are llguidance's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from llguidance import LLMatcher

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime.cluster.answers import Guide
    from runtime.cluster.speech import Speech
    from runtime.cluster.text import ModelText, TextStream
    from runtime.server.vocabulary import Vocabulary

EVERYTHING = b""
"""The mask that allows every token."""
ANY_OBJECT: dict[str, Any] = {"type": "object"}
_WHITE_SPACE = {"whitespace_pattern": r"[\x20\x0A\x0D\x09]{0,32}"}
"""Room for JSON with indentation. Bounded, because a small model may go on for ever with blanks."""


def schema_grammar(schema: Mapping[str, Any]) -> str:
    """The grammar of JSON that fits ``schema``."""
    return LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=_WHITE_SPACE)  # type: ignore[arg-type]  # a TypedDict that llguidance does not export


def call_grammar(tools: Sequence[dict[str, Any]], begin: str, end: str, vocabulary: Vocabulary) -> str:
    """The grammar of one call of one of ``tools``, as JSON between two marks; an empty ``begin`` is there already."""
    schema = {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "name": {"const": function["name"]},
                    "arguments": function.get("parameters", ANY_OBJECT),
                },
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
            for function in (tool["function"] for tool in tools)
        ],
        "x-guidance": _WHITE_SPACE,
    }
    parts = [_mark(begin, vocabulary), "space", f"%json {json.dumps(schema)}", "space", _mark(end, vocabulary)]
    lark = f"start: {' '.join(filter(None, parts))}\nspace: /[ \\n]{{0,2}}/\n"
    return LLMatcher.grammar_from_lark(lark)


def check_grammar(grammar: str, vocabulary: Vocabulary) -> None:
    """Raises :class:`PomonaError` with what llguidance does not take."""
    if words := LLMatcher.validate_grammar(grammar, vocabulary.tokens):
        raise PomonaError(words.strip().splitlines()[0].rstrip("."))


class GrammarGuide:
    """Everything is allowed until ``after`` was said, if there is one; then what the grammar says.

    With ``repeats`` it begins anew when the grammar is through; otherwise the answer ends there.
    """

    def __init__(
        self, grammar: str, vocabulary: Vocabulary, text: ModelText, *, after: str = "", repeats: bool = False
    ) -> None:
        self._grammar = grammar
        self._vocabulary = vocabulary
        self._text = text
        self._after = after
        self._repeats = repeats
        self._said = ""
        self._stream: TextStream = text.streamer()
        self._matcher: LLMatcher | None = None if after else self._new_matcher()

    def take(self, token: int) -> None:
        """This one came."""
        if self._matcher is None:
            self._said += self._stream.add(token)
            _, mark, rest = self._said.partition(self._after)
            if mark:
                self._matcher = self._new_matcher()
                self._begin_with(rest)
            else:
                self._said = self._said[-len(self._after) :]
        else:
            self._matcher.consume_token(token)
            self._look_for_end()

    def mask(self) -> bytes:
        """What may come now."""
        if self._matcher is None or self._matcher.is_error():
            return EVERYTHING
        return self._matcher.compute_bitmask()

    def _begin_with(self, rest: str) -> None:
        """Text after the mark, in the mark's own last token. One that does not fit leaves the answer free."""
        assert self._matcher is not None  # it was just made
        tokens = self._vocabulary.tokens.tokenize_str(rest) if rest else []
        if tokens and not self._matcher.consume_tokens(tokens):
            self._start_over()

    def _look_for_end(self) -> None:
        assert self._matcher is not None  # it took a token
        if self._repeats and self._matcher.is_stopped():
            self._start_over()

    def _start_over(self) -> None:
        self._matcher, self._said, self._stream = None, "", self._text.streamer()

    def _new_matcher(self) -> LLMatcher:
        return LLMatcher(self._vocabulary.tokens, self._grammar)


class ThinkingGuide:
    """Ends the thoughts of a model after ``limit_tokens``; what follows is up to ``then``, if there is one."""

    def __init__(self, speech: Speech, stream: TextStream, end: Sequence[int], limit: int, then: Guide | None) -> None:
        self._speech = speech
        self._stream = stream
        self._end = tuple(end)
        self._left = limit
        self._then = then
        self._ended_tokens = 0
        """How many tokens of the end mark are said, once the limit is reached."""

    def take(self, token: int) -> None:
        """This one came."""
        if self._then is not None:
            self._then.take(token)
        if self._left <= 0 and self._speech.thinking:
            self._ended_tokens += 1
        self._left -= self._speech.thinking
        self._speech.add(self._stream.add(token))

    def mask(self) -> bytes:
        """What may come now."""
        if self._left <= 0 and self._speech.thinking and self._ended_tokens < len(self._end):
            return (1 << self._end[self._ended_tokens]).to_bytes(self._end[self._ended_tokens] // 8 + 1, "little")
        return EVERYTHING if self._then is None else self._then.mask()


def _mark(text: str, vocabulary: Vocabulary) -> str:
    """A mark in a Lark grammar: special tokens have a form of their own."""
    if not text:
        return ""
    tokens = vocabulary.tokens.tokenize_str(text, parse_special=True)
    if len(tokens) == 1 and vocabulary.tokens.is_special_token(tokens[0]):
        return text if text.startswith("<") and text.endswith(">") else f"<[{tokens[0]}]>"
    return json.dumps(text)
