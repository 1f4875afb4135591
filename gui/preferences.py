"""What a person has set for every session and every model, as one frozen value. Kept with the window's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from runtime.planning.values import Goal  # msgspec resolves the annotation when it decodes
from runtime.server.keys import own_api_key
from runtime.server.options import DEFAULT_API_PORT, EVERYWHERE, LOOPBACK, ApiOptions

if TYPE_CHECKING:
    from pathlib import Path

Reach = Literal["loopback", "network"]
ContextTokens = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
"""What Qt can hold, and more than any model takes."""


class Preferences(msgspec.Struct, frozen=True):
    """Each has the value that counts if nobody sets it."""

    goal: Goal = "even"
    """How the layers of a model are shared out that was not arranged yet."""
    context_tokens: ContextTokens | None = None
    """Of such a model; None for what the planner takes."""
    keep_running: bool = True
    """Go on with what is left when a node is lost."""
    reach: Reach = "loopback"
    """Who may reach the API of a running model."""
    port: Annotated[int, msgspec.Meta(ge=1024, le=65535)] = DEFAULT_API_PORT
    wants_key: bool = False
    """Programs of this machine show the key too; those of others always do."""

    @property
    def needs_key(self) -> bool:
        return self.wants_key or self.reach == "network"


def api_options(preferences: Preferences, home: Path) -> ApiOptions:
    """How a session opens its API. Raises :class:`PomonaError` if there can be no key."""
    return ApiOptions(
        EVERYWHERE if preferences.reach == "network" else LOOPBACK,
        preferences.port,
        or_any_port=preferences.port == DEFAULT_API_PORT,
        api_key=own_api_key(home) if preferences.needs_key else "",
    )
