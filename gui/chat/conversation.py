"""A chat as frozen values: questions with what became of them, and what the model is sent. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gui.formatting import count_words, rate_words, seconds_words
from runtime.cluster.messages import ChatMessage, Finished, Rejected, Text

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and its answer so far."""

    request_id: str
    question: str
    answer: str = ""
    finished: Finished | None = None
    error: str | None = None

    @property
    def open(self) -> bool:
        """Whether the answer may still grow."""
        return self.finished is None and self.error is None

    def received(self, message: Text | Finished | Rejected) -> Exchange:
        """After a message about this request."""
        match message:
            case Text():
                return replace(self, answer=self.answer + message.text)
            case Finished():
                return replace(self, finished=message)
            case Rejected():
                return replace(self, error=message.reason)

    def failed(self, reason: str) -> Exchange:
        """After the session ended; what was said so far stays."""
        return replace(self, error=reason) if self.open else self


def messages_for(exchanges: Sequence[Exchange], question: str) -> tuple[ChatMessage, ...]:
    """The chat so far and a new question.

    Questions that got no answer are left out: the models' templates want turns to alternate.
    """
    messages: list[ChatMessage] = []
    for exchange in exchanges:
        if exchange.answer.strip():
            messages.append(ChatMessage("user", exchange.question))
            messages.append(ChatMessage("assistant", exchange.answer))
    return (*messages, ChatMessage("user", question))


def footer_words(finished: Finished) -> str:
    """What was measured of an answer: ``TTFT 0.4 s · 31.2 tok/s · 57 tokens``."""
    parts = [f"TTFT {seconds_words(finished.ttft_seconds)}"] if finished.completion_tokens else []
    if finished.decode_tokens_per_second > 0:
        parts.append(rate_words(finished.decode_tokens_per_second))
    parts.append(count_words(finished.completion_tokens, "token"))
    if finished.finish_reason == "length":
        parts.append("cut at the length limit")
    elif finished.finish_reason == "cancelled":
        parts.append("stopped")
    return " · ".join(parts)
