"""The requests of front ends: from a chat to the driver, whichever one there is now, and back as text."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from typing import TYPE_CHECKING

from runtime.cluster.answers import Answers
from runtime.cluster.messages import Rejected
from runtime.engine.frames import CancelRequest, Sampling, Submit
from runtime.engine.hop import HopError
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.cluster.driver_link import DriverLink
    from runtime.cluster.messages import Cancel, Chat, ServerMessage
    from runtime.cluster.text import ChatText


class Requests:
    """Keeps every open request. While the pipeline is rebuilt there is no driver, and they wait."""

    def __init__(self, context_tokens: int, publish: Callable[[ServerMessage], None]) -> None:
        self._context_tokens = context_tokens
        self._publish = publish
        self.answers = Answers(publish)
        self._text: ChatText | None = None
        self._link: DriverLink | None = None
        self._old_links: list[DriverLink] = []

    @property
    def has_driver(self) -> bool:
        """Whether someone works on the requests now."""
        return self._link is not None

    def read_with(self, text: ChatText) -> None:
        """Chats may come: this is how they become tokens and back."""
        self._text = text

    async def chat(self, chat: Chat) -> None:
        """Begin an answer, or publish why not."""
        arrived_seconds = time.monotonic()
        text = self._text
        if text is None:
            self.reject(chat, "The model is not loaded yet; wait until it is ready.")
            return
        if self.answers.number_of(chat.request_id) is not None:
            self.reject(chat, "A request with this name is being answered already.")
            return
        try:
            prompt = await asyncio.to_thread(text.prompt, chat.messages)
        except PomonaError as error:
            self.reject(chat, str(error))
            return
        seed = secrets.randbits(63) if chat.seed is None else chat.seed
        sampling = Sampling(chat.temperature, chat.top_p, seed=seed)
        max_tokens = min(chat.max_tokens, self._context_tokens)
        submit = Submit(0, prompt, max_tokens, text.end_tokens, sampling)
        submit = self.answers.begin(chat.request_id, submit, text.streamer(), arrived_seconds)
        if self._link is not None:  # otherwise it begins with the next pipeline
            await _send(self._link, submit)

    def reject(self, chat: Chat, reason: str) -> None:
        """Publish why a chat is not answered."""
        self._publish(Rejected(chat.request_id, reason))

    async def cancel(self, cancel: Cancel) -> None:
        """End an answer; one that is over already needs nothing."""
        number = self.answers.number_of(cancel.request_id)
        if number is None:
            return
        if self._link is None:
            self.answers.cancel(number)
        else:
            await _send(self._link, CancelRequest(number))

    def leave_driver(self) -> None:
        """The pipeline is being rebuilt: what the driver still says is taken, and nothing is given to it any more."""
        if self._link is not None:
            self._old_links.append(self._link)
            self._link = None

    async def forget_drivers(self) -> None:
        """Close the links to drivers of earlier pipelines: no token of theirs comes after this."""
        while self._old_links:
            await self._old_links.pop().close()

    async def go_on(self, link: DriverLink) -> None:
        """Give a new driver all that is open."""
        submits = self.answers.unfinished()
        self._link = link
        await asyncio.gather(*(_send(link, submit) for submit in submits))

    async def close(self) -> None:
        """Leave every driver."""
        self.leave_driver()
        await self.forget_drivers()


async def _send(link: DriverLink, frame: Submit | CancelRequest) -> None:
    # The events' hop or the driver itself tells of a loss; what could not be sent is open and goes to the next one.
    with contextlib.suppress(HopError):
        await link.send(frame)
