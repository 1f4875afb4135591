"""``GET /health``: whether the model can be asked, for people and load balancers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.server.replies import json_reply

if TYPE_CHECKING:
    from aiohttp import web

    from runtime.server.model import Model

PATH = "/health"


class Status:
    """200 while every rank does what it should, 503 with the reason otherwise."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def handle(self, _request: web.Request) -> web.Response:
        """One look."""
        health = self._model.health()
        return json_reply(health, 200 if health.status == "ok" else 503)
