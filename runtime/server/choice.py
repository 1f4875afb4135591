"""One answer on its way from tokens to what a client is told."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING

from runtime.server.ask import Call, Delta, End, TokenInfo, Usage
from runtime.server.stops import StopStrings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.cluster.answers import Answer
    from runtime.cluster.speech import Kind
    from runtime.cluster.text import ModelText
    from runtime.engine.frames import TokenLogprobs
    from runtime.server.ask import Ask, Event, FinishReason
    from runtime.server.vocabulary import Vocabulary


class Choice:
    """Takes the tokens of one answer; ``is_over`` when nothing more is to be said, whatever still comes."""

    def __init__(self, ask: Ask, text: ModelText, vocabulary: Vocabulary | None, answer: Answer) -> None:
        """``vocabulary`` is needed where probabilities were asked for."""
        self.answer = answer
        self.is_over = False
        self._ask = ask
        self._text = text
        self._vocabulary = vocabulary
        self._stream = text.streamer(goes_on=ask.goes_on)
        self._speech = text.speech(ask.prompt, with_calls=bool(ask.tools)) if ask.sorts else None
        self._stops = StopStrings(ask.stops)
        self._infos: list[TokenInfo] = []
        self._calls = 0
        self._tokens = 0
        self._reasoning_tokens = 0

    def take(self, token: int, logprobs: TokenLogprobs | None) -> list[Event]:
        """One more token."""
        if self.is_over:
            return []
        self._tokens += 1
        self._reasoning_tokens += self._speech is not None and self._speech.thinking
        visible = self._visible
        said = self._sorted(self._stream.add(token))
        if visible and self._visible and logprobs is not None and self._vocabulary is not None:
            self._infos.append(self._vocabulary.info(token, logprobs))
        return self._told(said)

    def end(self, reason: FinishReason) -> list[Event]:
        """The driver says that this was all."""
        if self.is_over:
            return []
        said = self._sorted(self._stream.finish())
        if self._speech is not None:
            said += self._speech.finish()
        events = self._told(said)
        if not self.is_over:
            if rest := self._stops.finish():
                events.append(self._delta(rest))
            events.append(self._end("tool_calls" if self._calls and reason == "stop" else reason))
        return events

    @property
    def _visible(self) -> bool:
        return self._speech is None or self._speech.visible

    def _sorted(self, text: str) -> list[tuple[Kind, str]]:
        if self._speech is not None:
            return [*self._speech.add(text)]
        return [("content", text)] if text else []

    def _told(self, said: Iterable[tuple[Kind, str]]) -> list[Event]:
        events: list[Event] = []
        for kind, text in said:
            if self.is_over:
                break
            if kind == "reasoning":
                events.append(Delta("reasoning", text))
            elif kind == "call":
                events += self._called(text)
            else:
                events += self._content(text)
        return events

    def _content(self, text: str) -> list[Event]:
        events: list[Event] = []
        if shown := self._stops.add(text):
            events.append(self._delta(shown))
        if self._stops.found is not None:
            events.append(self._end("stop"))
        return events

    def _called(self, text: str) -> list[Event]:
        try:
            calls = self._text.calls_in(text, self._ask.tools)
        except ValueError:  # not a call after all: nothing that the model said is lost
            assert self._speech is not None  # it found the call
            return self._content(self._speech.marked(text))
        events: list[Event] = []
        for call in calls:
            self._calls += 1
            arguments = call.get("arguments", {})
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            events.append(Call(str(call.get("id") or f"call_{secrets.token_hex(12)}"), call["name"], text))
            if self._ask.one_call:
                return [*events, self._end("tool_calls")]
        return events

    def _delta(self, text: str) -> Delta:
        infos, self._infos = tuple(self._infos), []
        return Delta("content", text, infos)

    def _end(self, reason: FinishReason) -> End:
        self.is_over = True
        usage = Usage(self.answer.prompt_tokens, self.answer.cached_tokens, self._tokens, self._reasoning_tokens)
        return End(reason, usage, self._stops.found)
