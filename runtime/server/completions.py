"""``POST /v1/completions``: text that goes on from a prompt, without a chat template."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from runtime.server.ask import Ask, Delta, End, TokenInfo, Usage
from runtime.server.chat import usage_dict
from runtime.server.decode import decode, neutral_only
from runtime.server.errors import ApiError, openai_body, refused
from runtime.server.gathered import gather
from runtime.server.generation import Generation
from runtime.server.replies import json_reply
from runtime.server.sse import PAUSE_SECONDS, EventStream, end_with_error, kept_alive
from runtime.server.wire import Alternatives, Answers, Chosen, Client, Count

if TYPE_CHECKING:
    from aiohttp import web

    from runtime.cluster.text import ModelText
    from runtime.server.ask import Event
    from runtime.server.model import Model

PATH = "/v1/completions"

_DEFAULT_TOKENS = 16
"""OpenAI's own."""
_NEUTRAL: dict[str, tuple[Any, ...]] = {"echo": (None, False), "suffix": (None, "")}
_Prompts = Annotated[tuple[Any, ...], Meta(min_length=1)]


class CompletionRequest(Chosen, frozen=True, kw_only=True):
    """All that is understood; beside OpenAI's fields what ``ChatRequest`` names."""

    model: str
    prompt: str | _Prompts
    max_tokens: Count | None = None
    best_of: Answers | None = None
    logprobs: Alternatives | None = None
    user: Client | None = None
    echo: bool | None = None
    suffix: str | None = None

    def asks(self, text: ModelText, model: Model) -> list[Ask]:
        """One for each prompt. Raises :class:`ApiError`."""
        neutral_only(self, _NEUTRAL)
        self.check_stream()
        if self.best_of is not None and self.best_of != (self.n or 1):
            raise refused("best_of", "'best_of' other than 'n' is not supported here; leave it out.")
        wishes = self.wishes(-1 if self.logprobs is None else self.logprobs)
        sampling = wishes.sampling(text, "logit_bias")
        end_tokens = () if self.ignore_eos else text.end_tokens
        return [
            Ask(
                prompt,
                sampling,
                model.answer_tokens(len(prompt), self.max_tokens or _DEFAULT_TOKENS, "prompt"),
                end_tokens,
                self.stop_strings,
                self.n or 1,
                self.user or "",
                sorts=False,
                goes_on=True,
            )
            for prompt in _prompts(self.prompt, text)
        ]


def _prompts(given: str | tuple[Any, ...], text: ModelText) -> list[tuple[int, ...]]:
    """OpenAI takes a text, several, token ids, or several lists of them."""
    if isinstance(given, str):
        return [text.encode(given)]
    if all(isinstance(one, str) for one in given):
        return [text.encode(one) for one in given]
    lists = [given] if all(_is_token(one, text) for one in given) else list(given)
    for place, one in enumerate(lists):
        if not isinstance(one, list | tuple) or not one or not all(_is_token(token, text) for token in one):
            raise refused("prompt", f"Invalid 'prompt': item {place} is neither text nor token ids of this model.")
    return [tuple(one) for one in lists]


def _is_token(value: Any, text: ModelText) -> bool:
    return type(value) is int and 0 <= value < len(text.tokenizer)


class Completions:
    """Goes on from prompts with one model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        asked = decode(await request.read(), CompletionRequest)
        self._model.check_name(asked.model)
        asks = await asyncio.to_thread(asked.asks, self._model.text(), self._model)
        vocabulary = await self._model.vocabulary("logprobs") if asked.logprobs is not None else None
        async with Generation(self._model, *asks, vocabulary=vocabulary) as generation:
            head = {
                "id": f"cmpl-{secrets.token_hex(12)}",
                "object": "text_completion",
                "created": int(time.time()),
                "model": asked.model,
            }
            if asked.stream:
                return await _stream(request, generation, head, asked)
            return await _whole(generation, head, asked)


async def _stream(
    request: web.Request, generation: Generation, head: dict[str, Any], asked: CompletionRequest
) -> web.StreamResponse:
    stream = EventStream(request)
    ends: dict[int, End] = {}
    lengths = [0] * generation.count
    try:
        async with aclosing(generation.batches(PAUSE_SECONDS)) as batches:
            async for batch in kept_alive(stream, batches):
                parts = []
                for index, event in batch:
                    if isinstance(event, End):
                        ends[index] = event
                    parts.append(head | {"choices": [_piece(index, event, asked, lengths)]})
                await stream.send_all(parts)
    except ApiError as error:
        return await end_with_error(stream, error, openai_body(error))
    if asked.wants_usage:
        usage = _usage([ends[index] for index in range(generation.count)], asked.n or 1)
        await stream.send(head | {"choices": [], "usage": usage_dict(usage)})
    await stream.send("[DONE]")
    return await stream.close()


def _piece(index: int, event: Event, asked: CompletionRequest, lengths: list[int]) -> dict[str, Any]:
    text = event.text if isinstance(event, Delta) else ""
    tokens = event.tokens if isinstance(event, Delta) else ()
    reason = event.reason if isinstance(event, End) else None
    logprobs = None if asked.logprobs is None else _logprobs(tokens, lengths[index])
    lengths[index] += sum(len(token.text) for token in tokens)
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}


async def _whole(generation: Generation, head: dict[str, Any], asked: CompletionRequest) -> web.Response:
    gathered = await gather(generation)
    choices = [
        {
            "index": index,
            "text": choice.text,
            "logprobs": None if asked.logprobs is None else _logprobs(choice.tokens, 0),
            "finish_reason": choice.end.reason,
        }
        for index, choice in enumerate(gathered)
    ]
    usage = _usage([choice.end for choice in gathered], asked.n or 1)
    return json_reply(head | {"choices": choices, "usage": usage_dict(usage)})


def _usage(ends: list[End], answers: int) -> Usage:
    """Each prompt counts once, however many answers it has."""
    total = Usage()
    for first in range(0, len(ends), answers):
        its = sum((end.usage for end in ends[first : first + answers]), Usage())
        total = Usage(
            total.prompt_tokens + its.prompt_tokens,
            total.cached_tokens + its.cached_tokens,
            total.completion_tokens + its.completion_tokens,
            total.reasoning_tokens + its.reasoning_tokens,
        )
    return total


def _logprobs(tokens: tuple[TokenInfo, ...] | list[TokenInfo], offset: int) -> dict[str, Any]:
    offsets = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token.text)
    return {
        "tokens": [token.text for token in tokens],
        "token_logprobs": [token.logprob for token in tokens],
        "top_logprobs": [{text: value for text, _, value in token.top} for token in tokens],
        "text_offset": offsets,
    }
