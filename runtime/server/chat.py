"""``POST /v1/chat/completions``: OpenAI's chat API, streaming and not."""

from __future__ import annotations

import secrets
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from runtime.server.ask import Call, Delta, End, TokenInfo, Usage
from runtime.server.chat_wire import ChatRequest
from runtime.server.decode import decode
from runtime.server.errors import ApiError, openai_body
from runtime.server.gathered import Gathered, gather
from runtime.server.generation import Generation
from runtime.server.replies import json_reply
from runtime.server.sse import PAUSE_SECONDS, EventStream, end_with_error, kept_alive

if TYPE_CHECKING:
    from aiohttp import web

    from runtime.server.ask import Event, FinishReason
    from runtime.server.model import Model

PATH = "/v1/chat/completions"


class ChatCompletions:
    """Answers chats with one model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        asked = decode(await request.read(), ChatRequest)
        self._model.check_name(asked.model)
        ask, vocabulary = await asked.call().ask(self._model)
        async with Generation(self._model, ask, vocabulary=vocabulary) as generation:
            head = _Head(asked.model)
            if asked.stream:
                return await _stream(request, generation, head, asked)
            return await _whole(generation, head, asked)


class _Head:
    """What is the same in every chunk."""

    def __init__(self, model: str) -> None:
        self._id = f"chatcmpl-{secrets.token_hex(12)}"
        self._created = int(time.time())
        self._model = model

    def chunk(self, choices: list[dict[str, Any]], usage: Usage | None = None) -> dict[str, Any]:
        """A piece of a stream."""
        return self._with("chat.completion.chunk", choices, usage)

    def whole(self, choices: list[dict[str, Any]], usage: Usage) -> dict[str, Any]:
        """An answer in one piece."""
        return self._with("chat.completion", choices, usage)

    def _with(self, kind: str, choices: list[dict[str, Any]], usage: Usage | None) -> dict[str, Any]:
        body = {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._model,
            "choices": choices,
        }
        return body if usage is None else body | {"usage": usage_dict(usage)}


def usage_dict(usage: Usage) -> dict[str, Any]:
    """As OpenAI counts."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


# Streaming --------------------------------------------------------------------------------------------------------


async def _stream(request: web.Request, generation: Generation, head: _Head, asked: ChatRequest) -> web.StreamResponse:
    stream = EventStream(request)
    count = generation.count
    usage = Usage()
    calls = [0] * count
    try:
        async with aclosing(generation.batches(PAUSE_SECONDS)) as batches:
            async for batch in kept_alive(stream, batches):
                if stream.response is None:
                    role = {"role": "assistant", "content": ""}
                    await stream.send_all([head.chunk([_chunk_choice(index, role)]) for index in range(count)])
                chunks = []
                for index, event in batch:
                    if isinstance(event, End):
                        usage += event.usage
                    chunks.append(head.chunk([_event_choice(index, event, calls, asked)]))
                await stream.send_all(chunks)
    except ApiError as error:
        return await end_with_error(stream, error, openai_body(error))
    if asked.wants_usage:
        await stream.send(head.chunk([], usage))
    await stream.send("[DONE]")
    return await stream.close()


def _event_choice(index: int, event: Event, calls: list[int], asked: ChatRequest) -> dict[str, Any]:
    match event:
        case Delta("content", text, tokens):
            logprobs = {"content": _token_dicts(tokens), "refusal": None} if asked.logprobs else None
            return _chunk_choice(index, {"content": text}, logprobs=logprobs)
        case Delta(_, text):
            return _chunk_choice(index, {"reasoning_content": text})
        case Call(call_id, name, arguments):
            call = {
                "index": calls[index],
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            calls[index] += 1
            return _chunk_choice(index, {"tool_calls": [call]})
        case End(reason):
            return _chunk_choice(index, {}, reason)


def _chunk_choice(
    index: int, delta: dict[str, Any], reason: FinishReason | None = None, logprobs: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}


# In one piece -----------------------------------------------------------------------------------------------------


async def _whole(generation: Generation, head: _Head, asked: ChatRequest) -> web.Response:
    choices = await gather(generation)
    usage = sum((choice.end.usage for choice in choices), Usage())
    return json_reply(head.whole([_whole_choice(*indexed, asked) for indexed in enumerate(choices)], usage))


def _whole_choice(index: int, gathered: Gathered, asked: ChatRequest) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": gathered.text if gathered.text or not gathered.calls else None,
        "refusal": None,
    }
    if gathered.reasoning:
        message["reasoning_content"] = gathered.thoughts
    if gathered.calls:
        message["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in gathered.calls
        ]
    logprobs = {"content": _token_dicts(gathered.tokens), "refusal": None} if asked.logprobs else None
    return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": gathered.end.reason}


def _token_dicts(tokens: list[TokenInfo] | tuple[TokenInfo, ...]) -> list[dict[str, Any]]:
    return [
        {
            **_token_dict(token.text, token.utf8, token.logprob),
            "top_logprobs": [_token_dict(*other) for other in token.top],
        }
        for token in tokens
    ]


def _token_dict(text: str, utf8: bytes, logprob: float) -> dict[str, Any]:
    return {"token": text, "bytes": list(utf8), "logprob": logprob}
