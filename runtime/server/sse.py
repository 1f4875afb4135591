"""An answer as server-sent events (HTML's ``text/event-stream``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from runtime.server.errors import ApiError

PAUSE_SECONDS = 10.0
"""After so long without an event a comment is sent, so that nobody in between takes the connection for dead."""

_encoder = msgspec.json.Encoder()


class EventStream:
    """Begins with the first thing that is sent: until then an error still gets a status of its own."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.response: web.StreamResponse | None = None

    async def send(self, data: Any, event: str = "") -> None:
        """One event; ``data`` is a string as it is, or else becomes JSON."""
        payload = data.encode() if isinstance(data, str) else _encoder.encode(data)
        name = f"event: {event}\n".encode() if event else b""
        await self._write(name + b"data: " + payload + b"\n\n")

    async def send_all(self, parts: list[Any]) -> None:
        """Several nameless events at once."""
        if parts:
            await self._write(b"".join(b"data: " + _encoder.encode(part) + b"\n\n" for part in parts))

    async def keep_alive(self) -> None:
        """A comment."""
        await self._write(b": working\n\n")

    async def close(self) -> web.StreamResponse:
        """The end; returns the response."""
        response = await self._begun()
        await response.write_eof()
        return response

    async def _write(self, payload: bytes) -> None:
        await (await self._begun()).write(payload)

    async def _begun(self) -> web.StreamResponse:
        if self.response is None:
            self.response = web.StreamResponse(
                headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
            )
            await self.response.prepare(self._request)
        return self.response


async def kept_alive(stream: EventStream, batches: AsyncIterator[list[Any]]) -> AsyncIterator[list[Any]]:
    """Batches that are not empty; for each that is, a comment is sent."""
    async for batch in batches:
        if batch:
            yield batch
        else:
            await stream.keep_alive()


async def end_with_error(
    stream: EventStream, error: ApiError, body: dict[str, Any], event: str = ""
) -> web.StreamResponse:
    """Tell of an answer that broke off; before the stream has begun the error is raised instead."""
    if stream.response is None:
        raise error
    await stream.send(body, event)
    return await stream.close()
