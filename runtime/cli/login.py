"""``pomona login``: whether this Mac shares itself from the moment its owner logs in."""

from __future__ import annotations

import sys
from typing import Literal

from runtime.agent.login_item import LoginItem, switch, why_not
from runtime.errors import PomonaError

Action = Literal["on", "off", "status"]


def run_login(action: Action) -> int:
    """Switch, or tell. Raises :class:`PomonaError` if it cannot be switched."""
    if action == "status":
        if reason := why_not():
            raise PomonaError(reason)
        said = "On: this Mac is shared whenever you log in." if LoginItem().installed else "Off."
    else:
        was_on = switch(on=action == "on")
        off = "This Mac is no longer shared when you log in." if was_on else "It was off already."
        said = "This Mac is shared now, and whenever you log in." if action == "on" else off
    sys.stdout.write(said + "\n")
    return 0
