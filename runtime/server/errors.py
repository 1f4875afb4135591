"""What a client is told when its request cannot be answered, in the form of the API that it asked."""

from __future__ import annotations

from typing import Any

import msgspec

MESSAGES_PATH = "/v1/messages"

_OPENAI_TYPES = {401: "invalid_request_error", 403: "permission_error", 429: "rate_limit_error"}
_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


class ApiError(Exception):
    """A request that is refused, or an answer that broke off: one sentence, and the field that is meant if one is."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.retry_after_seconds = retry_after_seconds

    @property
    def headers(self) -> dict[str, str]:
        """Of the answer."""
        return {} if self.retry_after_seconds is None else {"Retry-After": str(self.retry_after_seconds)}


def refused(param: str, message: str, code: str = "invalid_value") -> ApiError:
    """A field of the request has a value that cannot be."""
    return ApiError(400, message, param=param, code=code)


def unsupported(param: str, message: str) -> ApiError:
    """A field of the request asks for what is not done here."""
    return ApiError(400, message, param=param, code="unsupported_parameter")


def openai_body(error: ApiError) -> dict[str, Any]:
    """As OpenAI's API says it."""
    fallback = "invalid_request_error" if error.status < 500 else "server_error"
    kind = _OPENAI_TYPES.get(error.status, fallback)
    return {"error": {"message": error.message, "type": kind, "param": error.param, "code": error.code}}


def anthropic_body(error: ApiError) -> dict[str, Any]:
    """As Anthropic's API says it, which has no field for the parameter: the sentence names it."""
    message = error.message
    if error.param and error.param not in message:
        message = f"{error.param}: {message}"
    return {"type": "error", "error": {"type": _ANTHROPIC_TYPES.get(error.status, "api_error"), "message": message}}


def body_for(path: str, error: ApiError) -> bytes:
    """The body of an error for whoever asked at ``path``."""
    is_anthropic = path == MESSAGES_PATH or path.startswith(f"{MESSAGES_PATH}/")
    return msgspec.json.encode(anthropic_body(error) if is_anthropic else openai_body(error))
