"""``pomona login``: whether this Mac shares itself from the moment its owner logs in."""

from __future__ import annotations

import sys
from typing import Literal

from resources import starting
from runtime.agent.folder import data_folder
from runtime.agent.login_item import LoginItem, only_on_macs

Action = Literal["on", "off", "status"]


def run_login(action: Action) -> int:
    """Switch, or tell. Raises :class:`runtime.errors.PomonaError` if it cannot be switched."""
    only_on_macs()
    item = LoginItem()
    if action == "on":
        item.install(starting.launcher("agent", "--at-login"), data_folder() / "logs" / "agent.log")
        said = "This Mac is shared now, and whenever you log in."
    elif action == "off":
        said = "This Mac is no longer shared when you log in." if item.remove() else "It was off already."
    else:
        said = "On: this Mac is shared whenever you log in." if item.installed else "Off."
    sys.stdout.write(said + "\n")
    return 0
