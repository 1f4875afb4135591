"""Answers in one piece."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

_encoder = msgspec.json.Encoder()


def json_reply(body: Any, status: int = 200) -> web.Response:
    """``body`` as JSON."""
    return web.Response(status=status, body=_encoder.encode(body), content_type="application/json")
