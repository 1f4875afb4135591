"""Text and tokens. The controller alone owns the tokenizer; workers see token ids.

This module and ``speech.py`` import mlx_lm for its tokenizer wrapper, streaming detokenizers (they know the byte and
space rules of each tokenizer family) and the parsers of each family's tool calls; no model is built here.
"""

from __future__ import annotations

import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any

import msgspec
from mlx_lm.utils import load_config, load_tokenizer

from runtime.cluster.speech import Speech
from runtime.engine.frames import Sampling
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from runtime.cluster.messages import ChatMessage

Turn = dict[str, Any]
"""One message of a chat as chat templates read it: ``role``, ``content``, perhaps ``tool_calls`` and more."""
_DEFAULTED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""Named alike in ``generation_config.json`` and in ``Sampling``."""


class ModelText:
    """Turns chats into prompts and tokens into text, as the model's own files say. May be used from any thread."""

    def __init__(self, folder: Path) -> None:
        """Read the tokenizer of ``folder``. Raises :class:`PomonaError` if it has none that can be read."""
        try:
            config = load_config(folder)
            self.tokenizer: Any = load_tokenizer(folder, eos_token_ids=config.get("eos_token_id"))
        except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
            raise PomonaError(f"The tokenizer of {folder.name} cannot be read; fetch the model again.") from error
        self.sampling_defaults = _sampling_defaults(folder)
        """What the model's author wants if nobody says otherwise."""
        self._lock = threading.Lock()  # a tokenizer is changed while it encodes

    @property
    def end_tokens(self) -> tuple[int, ...]:
        """Tokens that end an answer."""
        return tuple(sorted(self.tokenizer.eos_token_ids))

    @property
    def has_tools(self) -> bool:
        """Whether the chat template knows tools, in a form that can be read back."""
        return bool(self.tokenizer.has_tool_calling)

    @property
    def has_thinking(self) -> bool:
        """Whether the model may think before it answers."""
        return bool(self.tokenizer.has_thinking)

    def template_knows(self, name: str) -> bool:
        """Whether the chat template looks at an option of this name."""
        template = self.tokenizer.chat_template
        return isinstance(template, str) and name in template

    def prompt(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """Token ids of a chat with the model's turn begun. Raises :class:`PomonaError` if the template refuses it."""
        return self.render([{"role": message.role, "content": message.content} for message in messages])

    def render(
        self,
        turns: Sequence[Turn],
        tools: Sequence[dict[str, Any]] = (),
        options: Mapping[str, Any] | None = None,
        *,
        continues: bool = False,
    ) -> tuple[int, ...]:
        """The same for turns of every kind, with tools (OpenAI's form) and options of the model's template.

        With ``continues`` the last turn, which is the model's, is not closed.
        """
        if not self.tokenizer.has_chat_template:
            return self.encode("\n\n".join(str(turn["content"]) for turn in turns))
        try:
            with self._lock:
                tokens = self.tokenizer.apply_chat_template(
                    list(turns),
                    tools=list(tools) or None,
                    add_generation_prompt=not continues,
                    **({"continue_final_message": True} if continues else {}),
                    **(options or {}),
                )
        except Exception as error:  # a template is a program of the model's author and may raise anything
            raise PomonaError(f"The chat template of this model refuses the chat: {error}") from error
        return tuple(tokens)

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of plain text, with what the tokenizer puts before it."""
        with self._lock:
            return tuple(self.tokenizer.encode(text))

    def streamer(self, *, goes_on: bool = False) -> TextStream:
        """A fresh stream for one answer. One that goes on with a text keeps the space that it begins with."""
        stream = TextStream(self.tokenizer.detokenizer)
        if goes_on:
            stream.add(self.tokenizer.encode("a", add_special_tokens=False)[-1])
        return stream

    def speech(self, prompt: Sequence[int], *, with_calls: bool) -> Speech:
        """A fresh sorter of one answer to ``prompt``."""
        return Speech(self.tokenizer, prompt, with_calls=with_calls)

    def calls_in(self, text: str, tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The calls (``name``, ``arguments``, perhaps ``id``) in the text between the marks of a tool call.

        Raises :class:`ValueError` if it is none.
        """
        try:
            parsed = self.tokenizer.tool_parser(text, list(tools))
        except Exception as error:  # parsers are as many as model families, and the text is whatever a model says
            raise ValueError(f"no tool call: {error}") from error
        calls = parsed if isinstance(parsed, list) else [parsed]
        if not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
            raise ValueError("a tool call without a name")
        return calls


class TextStream:
    """Tokens in, text out; holds back what is half a character."""

    def __init__(self, detokenizer: Any) -> None:  # mlx-lm has no public base type
        self._detokenizer = detokenizer

    def add(self, token: int) -> str:
        """The text that ``token`` completes; may be empty."""
        self._detokenizer.add_token(token)
        segment: str = self._detokenizer.last_segment
        return segment

    def finish(self) -> str:
        """What was held back."""
        self._detokenizer.finalize()
        segment: str = self._detokenizer.last_segment
        return segment


def _sampling_defaults(folder: Path) -> dict[str, float]:
    """Those of ``generation_config.json`` that can be; none if it cannot be read, because nothing depends on it."""
    try:
        settings = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found: dict[str, float] = {}
    for name in _DEFAULTED:
        if isinstance(settings, dict) and name in settings:
            with contextlib.suppress(msgspec.ValidationError):
                found[name] = getattr(msgspec.convert({name: settings[name]}, Sampling), name)
    return found
