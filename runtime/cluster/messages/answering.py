"""What the controller says of an answer."""

from __future__ import annotations

from typing import Literal

from runtime.cluster.messages.asked import Chat  # msgspec resolves the annotation when it decodes
from runtime.cluster.messages.base import Message

FinishReason = Literal["stop", "length", "cancelled"]


class Text(Message, frozen=True, tag="text"):
    """The next piece of an answer. ``token_ids`` came since the last piece; ``text`` may lag behind them."""

    request_id: str
    text: str
    token_ids: tuple[int, ...]
    context_tokens: int = 0
    """Prompt and answer so far."""


class Finished(Message, frozen=True, tag="finished"):
    """The end of an answer, with what was measured by the controller."""

    request_id: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    ttft_seconds: float
    """From the request's arrival to its first token."""
    decode_tokens_per_second: float
    """Tokens after the first over the time since the first; 0 when there is only one."""
    cached_tokens: int = 0
    """Of the prompt's tokens, those that were in the caches already."""


class Rejected(Message, frozen=True, tag="rejected"):
    """This request cannot be answered; the session goes on."""

    request_id: str
    reason: str


class Answered(Message, frozen=True, tag="answered"):
    """What was asked and answered before this front end came; an answer that goes on continues as ``Text``."""

    chat: Chat
    text: str
    finished: Finished | None = None
    error: str = ""
    """Why it was rejected."""
