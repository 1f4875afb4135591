"""The requests of a session, whoever asks: to the driver, whichever one there is now, and back."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING

from runtime.cluster.answers import Answers
from runtime.cluster.messages import Finished, Rejected, Text
from runtime.engine.frames import CancelRequest, Sampling, Submit
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.cluster.answers import Answer, Guide, Listener, Outcome
    from runtime.cluster.driver_link import DriverLink
    from runtime.cluster.messages import Cancel, Chat, ServerMessage
    from runtime.cluster.text import ModelText, TextStream
    from runtime.engine.frames import Mask, TokenLogprobs


class Requests:
    """Keeps every open request. While the pipeline is rebuilt there is no driver, and they wait."""

    def __init__(self, context_tokens: int, publish: Callable[[ServerMessage], None]) -> None:
        self._context_tokens = context_tokens
        self._publish = publish
        self.answers = Answers(self._post)
        self._chats: dict[str, Answer] = {}
        """Of front ends, by their own names for them."""
        self._text: ModelText | None = None
        self._link: DriverLink | None = None
        self._old_links: list[DriverLink] = []

    @property
    def has_driver(self) -> bool:
        """Whether someone works on the requests now."""
        return self._link is not None

    @property
    def text(self) -> ModelText | None:
        """How chats become tokens and back; None before the model is loaded."""
        return self._text

    def read_with(self, text: ModelText) -> None:
        """Chats may come: this is how they become tokens and back."""
        self._text = text

    def begin(
        self, submit: Submit, listener: Listener, guide: Guide | None = None, *, arrived_seconds: float | None = None
    ) -> Answer:
        """Have the driver answer ``submit``, whose number is not looked at."""
        arrived = time.monotonic() if arrived_seconds is None else arrived_seconds
        answer = self.answers.begin(submit, listener, guide, arrived)
        if self._link is not None and self.answers.has(
            answer.number
        ):  # otherwise with the next pipeline, if there is one
            self._post(answer.submit)
            if (mask := answer.next_mask()) is not None:
                self._post(mask)
        return answer

    def end(self, answer: Answer) -> None:
        """Have it end where it is; one that is over already needs nothing."""
        if not self.answers.has(answer.number):
            return
        if self._link is None:
            self.answers.cancel(answer.number)
        else:
            self._post(CancelRequest(answer.number))

    async def chat(self, chat: Chat) -> None:
        """Begin an answer for a front end, or publish why not."""
        arrived_seconds = time.monotonic()
        text = self._text
        if text is None:
            self.reject(chat, "The model is not loaded yet; wait until it is ready.")
            return
        if chat.request_id in self._chats:
            self.reject(chat, "A request with this name is being answered already.")
            return
        try:
            prompt = await asyncio.to_thread(text.prompt, chat.messages)
        except PomonaError as error:
            self.reject(chat, str(error))
            return
        seed = secrets.randbits(63) if chat.seed is None else chat.seed
        sampling = Sampling(chat.temperature, chat.top_p, seed=seed)
        submit = Submit(0, prompt, min(chat.max_tokens, self._context_tokens), text.end_tokens, sampling)
        listener = _FrontEnd(chat.request_id, len(prompt), text.streamer(), self._publish, self._chats)
        self._chats[chat.request_id] = self.begin(submit, listener, arrived_seconds=arrived_seconds)

    def reject(self, chat: Chat, reason: str) -> None:
        """Publish why a chat is not answered."""
        self._publish(Rejected(chat.request_id, reason))

    def cancel(self, cancel: Cancel) -> None:
        """End the answer of a front end; one that is over already needs nothing."""
        if answer := self._chats.get(cancel.request_id):
            self.end(answer)

    def leave_driver(self) -> None:
        """The pipeline is being rebuilt: what the driver still says is taken, and nothing is given to it any more."""
        if self._link is not None:
            self._old_links.append(self._link)
            self._link = None

    async def forget_drivers(self) -> None:
        """Close the links to drivers of earlier pipelines: no token of theirs comes after this."""
        while self._old_links:
            await self._old_links.pop().close()

    def go_on(self, link: DriverLink) -> None:
        """Give a new driver all that is open."""
        frames = self.answers.unfinished()
        self._link = link
        for frame in frames:
            self._post(frame)

    async def close(self) -> None:
        """Leave every driver."""
        self.leave_driver()
        await self.forget_drivers()

    def _post(self, frame: Submit | CancelRequest | Mask) -> None:
        if self._link is not None:
            self._link.post(frame)


class _FrontEnd:
    """Publishes one answer as text."""

    def __init__(
        self,
        request_id: str,
        prompt_tokens: int,
        stream: TextStream,
        publish: Callable[[ServerMessage], None],
        chats: dict[str, Answer],
    ) -> None:
        self._request_id = request_id
        self._context_tokens = prompt_tokens
        self._stream = stream
        self._publish = publish
        self._chats = chats

    def on_token(self, token: int, _logprobs: TokenLogprobs | None) -> None:
        self._context_tokens += 1
        self._publish(Text(self._request_id, self._stream.add(token), (token,), self._context_tokens))

    def on_end(self, outcome: Outcome) -> None:
        self._chats.pop(self._request_id, None)
        if rest := self._stream.finish():
            self._publish(Text(self._request_id, rest, (), self._context_tokens))
        self._publish(Finished(self._request_id, **outcome._asdict()))

    def on_refused(self, reason: str) -> None:
        self._chats.pop(self._request_id, None)
        self._publish(Rejected(self._request_id, reason))

    def on_broken(self, _reason: str) -> None:
        self._chats.pop(self._request_id, None)  # the session says itself why it is over
