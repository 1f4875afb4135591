"""From the bytes of a request to its struct. Whatever is wrong is one sentence that names the field. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from runtime.server.errors import ApiError, refused, unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

_PLACE = re.compile(r"^(?P<what>.*) - at `(?P<place>key in \$.*|\$.*)`$", re.DOTALL)
_UNKNOWN = re.compile(r"^Object contains unknown field `(.*)`$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(.*)`$", re.DOTALL)


def decode(body: bytes, kind: type[T]) -> T:
    """The request in ``body``. Raises :class:`ApiError` (400) with the field's path as ``param``."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _named(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(400, f"The body is not valid JSON: {error}.", code="invalid_json") from None
    except RecursionError:
        raise ApiError(400, "The body is nested too deeply.", code="invalid_json") from None


def converted(value: Any, kind: Any, place: str) -> Any:
    """A part of a request that was decoded already, as ``kind``. Raises :class:`ApiError` as :func:`decode` does."""
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        raise _named(str(error), place) from None


def neutral_only(request: Any, values: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse fields that are known and not supported, unless they ask for nothing."""
    for name, allowed in values.items():
        value = getattr(request, name)
        if not any(value is one or (type(value) is type(one) and value == one) for one in allowed):
            raise unsupported(name, f"'{name}' is not supported here; leave it out.")


def _named(words: str, within: str = "") -> ApiError:
    found = _PLACE.match(words)
    what, place = (found["what"], found["place"]) if found else (words, "$")
    place = (within + place.removeprefix("key in ").removeprefix("$").replace("[...]", "")).removeprefix(".")
    if unknown := _UNKNOWN.match(what):
        param = _joined(place, unknown[1])
        return ApiError(400, f"Unknown or unsupported parameter: '{param}'.", param=param, code="unknown_parameter")
    if missing := _MISSING.match(what):
        param = _joined(place, missing[1])
        message = f"Missing required parameter: '{param}'."
        return ApiError(400, message, param=param, code="missing_required_parameter")
    return refused(place, f"Invalid '{place}': {what}.") if place else refused("body", f"{what}.")


def _joined(place: str, field: str) -> str:
    return f"{place}.{field}" if place else field
