"""``POST /v1/messages``: Anthropic's API, streaming and not, and ``count_tokens`` beside it."""

from __future__ import annotations

import secrets
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from runtime.server.ask import Call, Delta, End, Usage
from runtime.server.decode import decode
from runtime.server.errors import MESSAGES_PATH, ApiError, anthropic_body
from runtime.server.gathered import gather
from runtime.server.generation import Generation
from runtime.server.messages_wire import CountRequest, MessagesRequest
from runtime.server.replies import json_reply
from runtime.server.sse import PAUSE_SECONDS, EventStream, end_with_error

if TYPE_CHECKING:
    from aiohttp import web

    from runtime.server.ask import Ask, Event
    from runtime.server.model import Model

COUNT_PATH = f"{MESSAGES_PATH}/count_tokens"
_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class Messages:
    """Answers messages with one model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        asked = decode(await request.read(), MessagesRequest)
        self._model.check_name(asked.model)
        ask, vocabulary = await asked.call().ask(self._model)
        async with Generation(self._model, ask, vocabulary=vocabulary) as generation:
            head = {"id": f"msg_{secrets.token_hex(12)}", "type": "message", "role": "assistant", "model": asked.model}
            if asked.stream:
                return await _stream(request, generation, head, ask)
            return await _whole(generation, head)

    async def count(self, request: web.Request) -> web.Response:
        """How many tokens a prompt has."""
        asked = decode(await request.read(), CountRequest)
        self._model.check_name(asked.model)
        ask, _ = await asked.call().ask(self._model)
        return json_reply({"input_tokens": len(ask.prompt)})


async def _whole(generation: Generation, head: dict[str, Any]) -> web.Response:
    (answer,) = await gather(generation)
    content: list[dict[str, Any]] = []
    if answer.reasoning:
        content.append({"type": "thinking", "thinking": answer.thoughts, "signature": ""})
    if answer.text or not answer.calls:
        content.append({"type": "text", "text": answer.text, "citations": None})
    content += [_call_block(call, msgspec.json.decode(call.arguments)) for call in answer.calls]
    body = head | {"content": content, **_ending(answer.end), "usage": _usage(answer.end.usage)}
    return json_reply(body)


def _ending(end: End) -> dict[str, Any]:
    reason = "stop_sequence" if end.stop is not None else _REASONS[end.reason]
    return {"stop_reason": reason, "stop_sequence": end.stop}


def _usage(usage: Usage) -> dict[str, Any]:
    """Anthropic counts cached tokens apart."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.completion_tokens,
    }


def _call_block(call: Call, arguments: Any) -> dict[str, Any]:
    its = arguments if isinstance(arguments, dict) else {}
    return {"type": "tool_use", "id": call.call_id, "name": call.name, "input": its}


async def _stream(request: web.Request, generation: Generation, head: dict[str, Any], ask: Ask) -> web.StreamResponse:
    stream = EventStream(request)
    blocks = _Blocks(stream)
    try:
        async with aclosing(generation.batches(PAUSE_SECONDS)) as batches:
            async for batch in batches:
                if stream.response is None:
                    usage = _usage(Usage(len(ask.prompt)))
                    message = head | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
                    await _send(stream, {"type": "message_start", "message": message})
                if not batch:
                    await _send(stream, {"type": "ping"})
                for _, event in batch:
                    await blocks.take(event)
    except ApiError as error:
        return await end_with_error(stream, error, anthropic_body(error), "error")
    await _send(stream, {"type": "message_stop"})
    return await stream.close()


async def _send(stream: EventStream, body: dict[str, Any]) -> None:
    await stream.send(body, body["type"])


class _Blocks:
    """Content blocks, one after the other, each begun and ended."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._index = -1
        self._open = ""
        """The kind of the block that is open."""

    async def take(self, event: Event) -> None:
        """One more event."""
        match event:
            case Delta("content", text):
                await self._enter("text", {"type": "text", "text": ""})
                await self._delta({"type": "text_delta", "text": text})
            case Delta(_, text):
                await self._enter("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                await self._delta({"type": "thinking_delta", "thinking": text})
            case Call():
                await self._close()
                await self._enter("tool_use", _call_block(event, {}))
                await self._delta({"type": "input_json_delta", "partial_json": event.arguments})
            case End():
                if self._index < 0:  # a message has at least one block
                    await self._enter("text", {"type": "text", "text": ""})
                await self._close()
                body = {"type": "message_delta", "delta": _ending(event), "usage": _usage(event.usage)}
                await _send(self._stream, body)

    async def _enter(self, kind: str, block: dict[str, Any]) -> None:
        if self._open == kind:
            return
        await self._close()
        self._index += 1
        self._open = kind
        await _send(self._stream, {"type": "content_block_start", "index": self._index, "content_block": block})

    async def _delta(self, delta: dict[str, Any]) -> None:
        await _send(self._stream, {"type": "content_block_delta", "index": self._index, "delta": delta})

    async def _close(self) -> None:
        if self._open:
            await _send(self._stream, {"type": "content_block_stop", "index": self._index})
            self._open = ""
