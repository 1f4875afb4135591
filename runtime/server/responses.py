"""``POST /v1/responses``: OpenAI's newer API, streaming and not. Nothing is stored."""

from __future__ import annotations

import secrets
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from runtime.server.ask import Call, Delta, End, TokenInfo, Usage
from runtime.server.decode import decode
from runtime.server.errors import ApiError
from runtime.server.generation import Generation
from runtime.server.replies import json_reply
from runtime.server.responses_wire import FunctionChoice, ResponsesRequest
from runtime.server.sse import PAUSE_SECONDS, EventStream, kept_alive

if TYPE_CHECKING:
    from aiohttp import web

    from runtime.server.ask import Event
    from runtime.server.model import Model

PATH = "/v1/responses"


class Responses:
    """Answers with one model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        asked = decode(await request.read(), ResponsesRequest)
        self._model.check_name(asked.model)
        ask, vocabulary = await asked.call().ask(self._model)
        async with Generation(self._model, ask, vocabulary=vocabulary) as generation:
            answer = _Answer(asked, ask.sampling.temperature, ask.sampling.top_p)
            if asked.stream:
                return await _stream(request, generation, answer)
            async with aclosing(generation.batches()) as batches:
                async for batch in batches:
                    for _, event in batch:
                        answer.take(event)
            return json_reply(answer.body())


async def _stream(request: web.Request, generation: Generation, answer: _Answer) -> web.StreamResponse:
    stream = EventStream(request)
    try:
        async with aclosing(generation.batches(PAUSE_SECONDS)) as batches:
            async for batch in kept_alive(stream, batches):
                if stream.response is None:
                    await _send(stream, answer.opening())
                for _, event in batch:
                    await _send(stream, answer.take(event))
    except ApiError as error:
        if stream.response is None:
            raise
        await _send(stream, answer.failed(error))
    return await stream.close()


async def _send(stream: EventStream, events: list[dict[str, Any]]) -> None:
    for event in events:
        await stream.send(event, event["type"])


class _Answer:
    """A response as it grows; everything that happens to it is also an event of a stream."""

    def __init__(self, asked: ResponsesRequest, temperature: float, top_p: float) -> None:
        self._asked = asked
        self._head = {
            "id": f"resp_{secrets.token_hex(16)}",
            "object": "response",
            "created_at": int(time.time()),
            "model": asked.model,
            "instructions": asked.instructions,
            "max_output_tokens": asked.max_output_tokens,
            "metadata": {},
            "parallel_tool_calls": asked.parallel_tool_calls is not False,
            "temperature": temperature,
            "top_p": top_p,
            "tool_choice": _tool_choice(asked),
            "tools": [_tool(tool) for tool in msgspec.to_builtins(asked.tools or ())],
            "text": {"format": _format(asked)},
            "truncation": "disabled",
            "store": False,
        }
        self._output: list[dict[str, Any]] = []
        self._open = ""
        """The kind of the item that is being written."""
        self._status = "in_progress"
        self._usage: Usage | None = None
        self._error: dict[str, Any] | None = None
        self._number = -1

    def opening(self) -> list[dict[str, Any]]:
        """The first events."""
        return [self._event(f"response.{name}", response=self.body()) for name in ("created", "in_progress")]

    def take(self, event: Event) -> list[dict[str, Any]]:
        """One more event of the answer, as those of a stream."""
        match event:
            case Delta("content", text, tokens):
                return [*self._enter("message"), self._text_delta(text, tokens)]
            case Delta(_, text):
                events = self._enter("reasoning")
                self._part["text"] += text
                return [*events, self._part_event("response.reasoning_text.delta", delta=text)]
            case Call():
                return [*self._close(), *self._call(event)]
            case End():
                return [*self._close("incomplete" if event.reason == "length" else "completed"), self._end(event)]

    def failed(self, error: ApiError) -> list[dict[str, Any]]:
        """The last events of an answer that broke off."""
        closing = self._close("incomplete")
        self._status = "failed"
        self._error = {"code": "server_error", "message": error.message}
        return [*closing, self._event("response.failed", response=self.body())]

    def body(self) -> dict[str, Any]:
        """All of it as it is now."""
        incomplete = {"reason": "max_output_tokens"} if self._status == "incomplete" else None
        return self._head | {
            "status": self._status,
            "error": self._error,
            "incomplete_details": incomplete,
            "output": msgspec.to_builtins(self._output),  # a copy: the answer goes on
            "usage": None if self._usage is None else _usage(self._usage),
        }

    @property
    def _item(self) -> dict[str, Any]:
        return self._output[-1]

    @property
    def _part(self) -> dict[str, Any]:
        """What the open item is made of."""
        part: dict[str, Any] = self._item["content"][0]
        return part

    def _enter(self, kind: str) -> list[dict[str, Any]]:
        if self._open == kind:
            return []
        events = self._close()
        self._open = kind
        item: dict[str, Any] = {"id": "", "type": kind, "status": "in_progress", "content": []}
        part: dict[str, Any]
        if kind == "message":
            item |= {"id": f"msg_{secrets.token_hex(12)}", "role": "assistant"}
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        else:
            item |= {"id": f"rs_{secrets.token_hex(12)}", "summary": []}
            part = {"type": "reasoning_text", "text": ""}
        self._output.append(item)
        events.append(self._item_event("response.output_item.added"))
        item["content"].append(part)
        events.append(self._part_event("response.content_part.added", part=dict(part)))
        return events

    def _text_delta(self, text: str, tokens: tuple[TokenInfo, ...]) -> dict[str, Any]:
        logprobs = [_logprob(token) for token in tokens]
        self._part["text"] += text
        self._part["logprobs"] += logprobs
        return self._part_event("response.output_text.delta", delta=text, logprobs=logprobs)

    def _call(self, call: Call) -> list[dict[str, Any]]:
        item = {
            "id": f"fc_{secrets.token_hex(12)}",
            "type": "function_call",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": "",
            "status": "in_progress",
        }
        self._output.append(item)
        added = self._item_event("response.output_item.added")
        item |= {"arguments": call.arguments, "status": "completed"}
        place = {"item_id": item["id"], "output_index": len(self._output) - 1}
        return [
            added,
            self._event("response.function_call_arguments.delta", delta=call.arguments, **place),
            self._event("response.function_call_arguments.done", arguments=call.arguments, name=call.name, **place),
            self._item_event("response.output_item.done"),
        ]

    def _close(self, status: str = "completed") -> list[dict[str, Any]]:
        if not self._open:
            return []
        kind, self._open = self._open, ""
        part = self._part
        if kind == "message":
            done = self._part_event("response.output_text.done", text=part["text"], logprobs=part["logprobs"])
        else:
            done = self._part_event("response.reasoning_text.done", text=part["text"])
        part_done = self._part_event("response.content_part.done", part=dict(part))
        self._item["status"] = status
        return [done, part_done, self._item_event("response.output_item.done")]

    def _end(self, end: End) -> dict[str, Any]:
        self._status = "incomplete" if end.reason == "length" else "completed"
        self._usage = end.usage
        return self._event(f"response.{self._status}", response=self.body())

    def _item_event(self, kind: str) -> dict[str, Any]:
        item = msgspec.to_builtins(self._item)
        return self._event(kind, output_index=len(self._output) - 1, item=item)

    def _part_event(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self._event(
            kind, item_id=self._item["id"], output_index=len(self._output) - 1, content_index=0, **fields
        )

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **fields}


def _tool_choice(asked: ResponsesRequest) -> Any:
    choice = asked.tool_choice
    return {"type": "function", "name": choice.name} if isinstance(choice, FunctionChoice) else choice or "auto"


def _tool(given: dict[str, Any]) -> dict[str, Any]:
    return given | {"type": "function", "parameters": given.get("parameters"), "strict": given.get("strict") or False}


def _format(asked: ResponsesRequest) -> Any:
    given = asked.text.format if asked.text is not None else None
    return {"type": "text"} if given is None else msgspec.to_builtins(given)


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _logprob(token: TokenInfo) -> dict[str, Any]:
    return {
        "token": token.text,
        "bytes": list(token.utf8),
        "logprob": token.logprob,
        "top_logprobs": [{"token": text, "bytes": list(utf8), "logprob": value} for text, utf8, value in token.top],
    }
