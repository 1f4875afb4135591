"""The model that is served, as the API sees it: its names, its text, its room, and whether it can be asked."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

from runtime.errors import PomonaError
from runtime.server.errors import ApiError, refused, unsupported
from runtime.server.metrics import Metrics
from runtime.server.vocabulary import Vocabulary

if TYPE_CHECKING:
    from runtime.cluster.health import Health
    from runtime.cluster.requests import Requests
    from runtime.cluster.text import ModelText
    from runtime.server.options import ApiOptions

RETRY_SECONDS = 5


class Served(Protocol):
    """What the API wants of a session."""

    @property
    def requests(self) -> Requests: ...

    @property
    def model_names(self) -> tuple[str, ...]: ...

    @property
    def context_tokens(self) -> int: ...

    def health(self) -> Health:
        """How every rank is."""


class Model:
    """One session's model."""

    def __init__(self, session: Served, options: ApiOptions) -> None:
        self._session = session
        self._options = options
        self._vocabulary: asyncio.Task[Vocabulary] | None = None
        self.created_seconds = int(time.time())
        self.metrics = Metrics(session.health)

    @property
    def name(self) -> str:
        return self._session.model_names[0]

    @property
    def requests(self) -> Requests:
        return self._session.requests

    @property
    def context_tokens(self) -> int:
        """Of prompt and answer together."""
        return self._session.context_tokens

    def health(self) -> Health:
        """How every rank is."""
        return self._session.health()

    def check_name(self, name: str) -> None:
        """Raises :class:`ApiError` (404) if ``name`` is another model."""
        if name not in self._session.model_names:
            message = f"The model '{name}' is not loaded here; '{self.name}' is."
            raise ApiError(404, message, param="model", code="model_not_found")

    def text(self) -> ModelText:
        """Raises :class:`ApiError` (503) while the model is being loaded."""
        text = self.requests.text
        if text is None:
            message = "The model is being loaded; try again when it is ready."
            raise ApiError(503, message, code="model_loading", retry_after_seconds=RETRY_SECONDS)
        return text

    def check_room(self, count: int) -> None:
        """Raises :class:`ApiError` (429) if so many more requests are too many."""
        if self.requests.answers.active + count > self._options.waiting_limit:
            message = f"{self.requests.answers.active} requests are being answered or wait already; try again later."
            raise ApiError(429, message, code="rate_limit_exceeded", retry_after_seconds=RETRY_SECONDS)

    def answer_tokens(self, prompt_tokens: int, wanted: int | None, param: str) -> int:
        """The longest answer. Raises :class:`ApiError` (400) if the prompt leaves no room for one token."""
        left = self.context_tokens - prompt_tokens
        if not prompt_tokens:
            raise refused(param, f"Invalid '{param}': it is empty; write something.", "empty_prompt")
        if left < 1:
            message = (
                f"This model's maximum context length here is {self.context_tokens} tokens, and '{param}' has "
                f"{prompt_tokens}; shorten it, or load the model with a longer context."
            )
            raise refused(param, message, "context_length_exceeded")
        return left if wanted is None else min(wanted, left)

    async def vocabulary(self, param: str) -> Vocabulary:
        """As bytes, for the field ``param``. Raises :class:`ApiError` (400) if this model's cannot be read so."""
        if self._vocabulary is None:
            self._vocabulary = asyncio.create_task(asyncio.to_thread(Vocabulary, self.text()), name="vocabulary")
        try:
            return await asyncio.shield(self._vocabulary)
        except PomonaError as error:
            raise unsupported(param, f"'{param}' is not supported with this model: {error}") from error
