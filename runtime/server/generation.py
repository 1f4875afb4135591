"""The answers to a request, from the driver to whoever writes them out."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Self

import msgspec

from runtime.cluster.answers import Outcome
from runtime.engine.frames import Submit
from runtime.server.ask import Delta, Event
from runtime.server.choice import Choice
from runtime.server.errors import ApiError
from runtime.server.model import RETRY_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.engine.frames import TokenLogprobs
    from runtime.server.ask import Ask
    from runtime.server.metrics import Metrics
    from runtime.server.model import Model
    from runtime.server.vocabulary import Vocabulary

_Heard = tuple[int, "_Token | Outcome | ApiError"]
_Token = tuple[int, "TokenLogprobs | None"]


class Generation:
    """``async with`` it: whatever still runs when the block is left is given up, so that its slots are free."""

    def __init__(self, model: Model, *asks: Ask, vocabulary: Vocabulary | None = None) -> None:
        """The answers are numbered, all of one ask before those of the next.

        ``vocabulary`` is needed where probabilities were asked for.
        """
        self._model = model
        self._asks = asks
        self._vocabulary = vocabulary
        self._heard: asyncio.Queue[_Heard] = asyncio.Queue()
        self._choices: list[Choice] = []

    async def __aenter__(self) -> Self:
        self._model.check_room(self.count)
        for ask in self._asks:
            for index in range(ask.count):
                self._begin(ask, index)
        return self

    async def __aexit__(self, *_: object) -> None:
        for choice in self._choices:
            self._model.requests.end(choice.answer)

    @property
    def count(self) -> int:
        """How many answers there will be."""
        return sum(ask.count for ask in self._asks)

    async def batches(self, pause_seconds: float | None = None) -> AsyncGenerator[list[tuple[int, Event]]]:
        """What happens, each event with the index of its answer, until every answer has its end.

        An empty batch comes whenever nothing has happened for ``pause_seconds``. Raises :class:`ApiError`.
        """
        while not all(choice.is_over for choice in self._choices):
            try:
                async with asyncio.timeout(pause_seconds):
                    heard = [await self._heard.get()]
            except TimeoutError:
                yield []
                continue
            while not self._heard.empty():
                heard.append(self._heard.get_nowait())
            events: list[tuple[int, Event]] = []
            broken: ApiError | None = None
            for index, what in heard:
                if isinstance(what, ApiError):
                    broken = what
                    break
                events += [(index, event) for event in self._events(index, what)]
            if events:
                yield _joined(events)
            if broken is not None:  # only now: what was said before it counts
                raise broken

    def _begin(self, ask: Ask, index: int) -> None:
        seed = (ask.sampling.seed + index) % (1 << 63)
        sampling = msgspec.structs.replace(ask.sampling, seed=seed)
        submit = Submit(0, ask.prompt, ask.max_tokens, ask.end_tokens, sampling, client=_short(ask.client))
        guide = ask.new_guide() if ask.new_guide is not None else None
        ear = _Ear(len(self._choices), self._heard, self._model.metrics)
        answer = self._model.requests.begin(submit, ear, guide)
        self._choices.append(Choice(ask, self._model.text(), self._vocabulary, answer))

    def _events(self, index: int, what: _Token | Outcome) -> list[Event]:
        choice = self._choices[index]
        if isinstance(what, Outcome):
            return choice.end("length" if what.finish_reason == "length" else "stop")
        events = choice.take(*what)
        if choice.is_over:  # a stop string, or its only call: the driver does not know
            self._model.requests.end(choice.answer)
        return events


class _Ear:
    """Hears one answer."""

    def __init__(self, index: int, heard: asyncio.Queue[_Heard], metrics: Metrics) -> None:
        self._index = index
        self._heard = heard
        self._metrics = metrics

    def on_token(self, token: int, logprobs: TokenLogprobs | None) -> None:
        self._heard.put_nowait((self._index, (token, logprobs)))

    def on_end(self, outcome: Outcome) -> None:
        self._metrics.answered(outcome)
        self._heard.put_nowait((self._index, outcome))

    def on_refused(self, reason: str) -> None:
        # What a client can do something about was refused before it came so far: the queue of the driver is full.
        error = ApiError(429, reason, code="rate_limit_exceeded", retry_after_seconds=RETRY_SECONDS)
        self._heard.put_nowait((self._index, error))

    def on_broken(self, reason: str) -> None:
        error = ApiError(503, reason, code="session_over", retry_after_seconds=RETRY_SECONDS)
        self._heard.put_nowait((self._index, error))


def _short(client: str) -> str:
    """A name that the driver can tell apart; it is shown to nobody."""
    return hashlib.blake2b(client.encode(), digest_size=16).hexdigest() if client else ""


def _joined(events: list[tuple[int, Event]]) -> list[tuple[int, Event]]:
    """Neighbours of one kind as one: when tokens come faster than they are written, they go in larger pieces."""
    joined: list[tuple[int, Event]] = []
    places: dict[int, int] = {}
    for index, event in events:
        place = places.get(index)
        last = joined[place][1] if place is not None else None
        if place is not None and isinstance(last, Delta) and isinstance(event, Delta) and last.kind == event.kind:
            joined[place] = (index, Delta(last.kind, last.text + event.text, last.tokens + event.tokens))
        else:
            places[index] = len(joined)
            joined.append((index, event))
    return joined
