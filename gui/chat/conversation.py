"""A chat as frozen values: questions with what became of them, and what the model is sent. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gui.chat.reasoning import spoken
from gui.formatting import count_words, rate_words, seconds_words
from runtime.cluster.messages import ChatMessage, Finished, Rejected, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.session import Outcome


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and its answer so far."""

    request_id: str
    question: str
    answer: str = ""
    finished: Finished | None = None
    error: str | None = None
    split: str = ""
    """The layers of each stage when the question was asked: ``5 | 18 | 7``."""
    quoted: bool = False
    """Known from what a later question was sent with, so nothing was measured."""
    afresh: bool = False
    """Whether it was asked without what was said before."""
    context_tokens: int = 0
    """Prompt and answer so far, while the answer grows."""
    pause: str = ""
    """Why an open answer does not grow now."""
    remark: str = ""
    """What happened on the way: ``went on without Cherry``."""

    @property
    def open(self) -> bool:
        """Whether the answer may still grow."""
        return self.finished is None and self.error is None and not self.quoted

    @property
    def used_tokens(self) -> int:
        """Of the context; 0 until something is known."""
        if self.finished is not None:
            return self.finished.prompt_tokens + self.finished.completion_tokens
        return self.context_tokens

    def received(self, message: Text | Finished | Rejected) -> Exchange:
        """After a message about this request."""
        match message:
            case Text():
                answer = self.answer + message.text
                return replace(self, answer=answer, context_tokens=message.context_tokens, pause="")
            case Finished():
                return replace(self, finished=message, pause="")
            case Rejected():
                return replace(self, error=message.reason, pause="")

    def failed(self, reason: str) -> Exchange:
        """After the session ended; what was said so far stays."""
        return replace(self, error=reason, pause="") if self.open else self

    def paused(self, why: str) -> Exchange:
        """While the session goes over to another split."""
        return replace(self, pause=why) if self.open else self

    def went_on(self, remark: str) -> Exchange:
        """After it did."""
        return replace(self, pause="", remark=remark) if self.open else self

    def remarked(self, words: str) -> Exchange:
        """With something that was found about it."""
        return replace(self, remark=words)


def messages_for(exchanges: Sequence[Exchange], question: str, system: str = "") -> tuple[ChatMessage, ...]:
    """The chat so far and a new question, after the system prompt if there is one.

    Questions that got no answer are left out, and so is what the model thought: the models' templates want turns to
    alternate and say no reasoning of earlier ones.
    """
    messages = [ChatMessage("system", system)] if system.strip() else []
    for exchange in exchanges:
        said = spoken(exchange.answer).answer
        if said.strip():
            messages.append(ChatMessage("user", exchange.question))
            messages.append(ChatMessage("assistant", said))
    return (*messages, ChatMessage("user", question))


def went_on_words(outcome: Outcome | None) -> str:
    """What is remarked of an answer that a change of the split interrupted."""
    if outcome is None:
        return ""
    paused = f"paused {seconds_words(outcome.seconds)}"
    if not outcome.change.is_loss:
        return f"{paused} for another split"
    return f"{paused}, went on without {outcome.without}" if outcome.without else paused


def footer_words(exchange: Exchange) -> str:
    """What was measured of an answer: ``TTFT 0.4 s · 31.2 tok/s · 57 tokens · on 5 | 18 | 7``."""
    parts: list[str] = []
    finished = exchange.finished
    if finished is not None:
        if finished.completion_tokens:
            parts.append(f"TTFT {seconds_words(finished.ttft_seconds)}")
        if finished.decode_tokens_per_second > 0:
            parts.append(rate_words(finished.decode_tokens_per_second))
        parts.append(count_words(finished.completion_tokens, "token"))
    if exchange.split:
        parts.append(f"on {exchange.split}")
    if exchange.remark:
        parts.append(exchange.remark)
    if finished is not None and finished.finish_reason == "length":
        parts.append("cut at the length limit")
    elif finished is not None and finished.finish_reason == "cancelled":
        parts.append("stopped")
    elif exchange.error is not None and exchange.answer:
        parts.append("not complete")
    return " · ".join(parts)
