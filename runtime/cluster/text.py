"""Text and tokens. The controller alone owns the tokenizer; workers see token ids.

This module imports mlx_lm for its tokenizer wrapper and streaming detokenizers (they know the byte and space rules of
each tokenizer family); no model is built here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlx_lm.utils import load_config, load_tokenizer

from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runtime.cluster.messages import ChatMessage


class ChatText:
    """Turns chats into prompts and tokens into text, as the model's own files say."""

    def __init__(self, folder: Path) -> None:
        """Read the tokenizer of ``folder``. Raises :class:`PomonaError` if it has none that can be read."""
        try:
            config = load_config(folder)
            self._tokenizer: Any = load_tokenizer(folder, eos_token_ids=config.get("eos_token_id"))
        except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
            raise PomonaError(f"The tokenizer of {folder.name} cannot be read; fetch the model again.") from error

    @property
    def end_tokens(self) -> tuple[int, ...]:
        """Tokens that end an answer."""
        return tuple(sorted(self._tokenizer.eos_token_ids))

    def prompt(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """Token ids of a chat with the model's turn begun. Raises :class:`PomonaError` if the template refuses it."""
        turns = [{"role": message.role, "content": message.content} for message in messages]
        if not self._tokenizer.has_chat_template:
            text = "\n\n".join(turn["content"] for turn in turns)
            return tuple(self._tokenizer.encode(text))
        try:
            return tuple(self._tokenizer.apply_chat_template(turns, add_generation_prompt=True))
        except Exception as error:  # a template is a program of the model's author and may raise anything
            raise PomonaError(f"The chat template of this model refuses the chat: {error}") from error

    def streamer(self) -> TextStream:
        """A fresh stream for one answer."""
        return TextStream(self._tokenizer.detokenizer)


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
