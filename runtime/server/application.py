"""The HTTP server of a session: routes, who may ask, and errors in the form of whoever asked."""

from __future__ import annotations

import errno
import hmac
import logging
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

from runtime.errors import PomonaError
from runtime.server import chat, completions, messages, metrics, models, responses, status
from runtime.server.chat import ChatCompletions
from runtime.server.completions import Completions
from runtime.server.errors import MESSAGES_PATH, ApiError, body_for
from runtime.server.messages import Messages
from runtime.server.model import Model, Served
from runtime.server.models import Models
from runtime.server.responses import Responses
from runtime.server.status import Status

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

    from runtime.server.options import ApiOptions

log = logging.getLogger(__name__)

BODY_LIMIT_BYTES = 16 << 20
"""Room for a chat of a million tokens."""
_SHUTDOWN_SECONDS = 2.0


class ApiServer:
    """Listens from :meth:`open` to :meth:`close`, also while the model is still being loaded."""

    def __init__(self, session: Served, options: ApiOptions) -> None:
        self.options = options
        self._model = Model(session, options)
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def address(self) -> str:
        """Where clients find it: the base of the API's addresses."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.options.host, self.options.host)  # noqa: S104  names, not a place to listen
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"http://{host}:{self.port}/v1"

    async def open(self) -> None:
        """Listen. Raises :class:`PomonaError` if the port is taken, or open to others without a key."""
        if not self.options.api_key and not _is_loopback(self.options.host):
            raise PomonaError(f"Listening on {self.options.host} needs an API key, because others can reach it there.")
        application = web.Application(middlewares=[self._guard], client_max_size=BODY_LIMIT_BYTES)
        router = application.router
        router.add_post(chat.PATH, ChatCompletions(self._model).handle)
        router.add_post(responses.PATH, Responses(self._model).handle)
        router.add_post(MESSAGES_PATH, Messages(self._model).handle)
        router.add_post(messages.COUNT_PATH, Messages(self._model).count)
        router.add_post(completions.PATH, Completions(self._model).handle)
        router.add_get(metrics.PATH, self._model.metrics.handle)
        listed = Models(self._model)
        router.add_get(models.PATH, listed.list)
        router.add_get(f"{models.PATH}/{{name:.+}}", listed.get)
        router.add_get(status.PATH, Status(self._model).handle)
        # A handler whose client has gone is cancelled, which gives up its answers.
        self._runner = web.AppRunner(
            application, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_SECONDS
        )
        await self._runner.setup()
        await self._listen()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Let answers that broke off be told, then stop."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _listen(self) -> None:
        assert self._runner is not None  # open made it
        host, port = self.options.host, self.options.port
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            if error.errno == errno.EADDRINUSE and self.options.or_any_port:
                log.warning("port %s is taken; another one is used", port)
                await web.TCPSite(self._runner, host, 0).start()
                return
            if error.errno == errno.EADDRINUSE:
                raise PomonaError(f"Port {port} on {host} is taken; choose another with --port.") from error
            raise PomonaError(f"Port {port} on {host} cannot be opened ({error.strerror}).") from error

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await self._answer(request, handler)
        resource = request.match_info.route.resource
        self._model.metrics.asked(resource.canonical if resource is not None else "elsewhere", response.status)
        return response

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._check_caller(request)
            return await handler(request)
        except ApiError as error:
            return _told(request, error)
        except web.HTTPException as error:
            return _told(request, _http_error(request, error))
        except ConnectionError:
            raise  # the client is gone; there is nobody to tell
        except Exception:
            log.exception("a request to %s failed", request.path)
            return _told(request, ApiError(500, "Something broke inside Pomona; its log says what."))

    def _check_caller(self, request: web.Request) -> None:
        """Raises :class:`ApiError` for callers without the key, and for web pages of elsewhere where there is none."""
        key = self.options.api_key
        if key:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ") or request.headers.get(
                "x-api-key", ""
            )
            if not hmac.compare_digest(key.encode(), given.encode(errors="surrogateescape")):
                raise ApiError(401, "The API key is missing or wrong.", code="invalid_api_key")
            return
        # Without a key a page that a person looks at could ask from their own browser.
        origin = request.headers.get("Origin")
        if not _is_loopback(_host_of(f"//{request.host}")) or (
            origin is not None and not _is_loopback(_host_of(origin))
        ):
            raise ApiError(403, "Web pages of other places may not ask here; set an API key to let them.")


def _told(request: web.Request, error: ApiError) -> web.Response:
    body = body_for(request.path, error)
    return web.Response(status=error.status, body=body, content_type="application/json", headers=error.headers)


def _http_error(request: web.Request, error: web.HTTPException) -> ApiError:
    if error.status == 413:
        return ApiError(413, f"The body is larger than {BODY_LIMIT_BYTES >> 20} MB.", code="request_too_large")
    if error.status in {404, 405}:
        return ApiError(error.status, f"There is no {request.method} {request.path} here.", code="unknown_url")
    return ApiError(error.status, f"{error.reason}.")


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
