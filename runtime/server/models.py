"""``GET /v1/models``: what is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.server.replies import json_reply

if TYPE_CHECKING:
    from aiohttp import web

    from runtime.server.model import Model

PATH = "/v1/models"


class Models:
    """Lists the one model that a session runs, by its names."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def list(self, _request: web.Request) -> web.Response:
        """All of them."""
        self._model.text()
        return json_reply({"object": "list", "data": [self._entry(self._model.name)]})

    async def get(self, request: web.Request) -> web.Response:
        """One."""
        name = request.match_info["name"]
        self._model.check_name(name)
        return json_reply(self._entry(name))

    def _entry(self, name: str) -> dict[str, Any]:
        return {
            "id": name,
            "object": "model",
            "created": self._model.created_seconds,
            "owned_by": "pomona",
            "context_length": self._model.context_tokens,
        }
