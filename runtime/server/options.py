"""How the API is opened."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

DEFAULT_API_PORT = 52520
WAITING_LIMIT = 128
"""Requests that may be under way or wait; the next one is told to come back later."""


class ApiOptions(msgspec.Struct, frozen=True):
    """Where the API listens, and for whom."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = DEFAULT_API_PORT
    """0 is any that is free."""
    or_any_port: bool = False
    """Take one that is free if ``port`` is not."""
    api_key: str = ""
    """Without one everybody who reaches the port may ask; then it has to be the loopback's."""
    waiting_limit: Annotated[int, Meta(ge=1)] = WAITING_LIMIT


LOOPBACK, EVERYWHERE = "127.0.0.1", "0.0.0.0"  # noqa: S104  what listening on the network means
