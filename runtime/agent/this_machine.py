"""What a person may want to know and set of this very machine: whether its network works, and sharing at login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discovery.local_network import judge
from discovery.network_test import look
from discovery.trust import TrustStore
from runtime.agent import login_item

if TYPE_CHECKING:
    from pathlib import Path

    from discovery.local_network import Verdict


class ThisMachine:
    """One machine with its data folder, which need not exist. Every call may take a while."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check_network(self) -> Verdict:
        """Whether other machines can be found, and if not, why; takes some two seconds.

        Raises :class:`OSError` if the folder cannot be used.
        """
        paired = TrustStore(self._folder).paired if self._folder.is_dir() else ()
        return judge(look([address for node in paired for address in node.addresses]))

    def shared_at_login(self) -> bool:
        """Whether the login item is on."""
        return not login_item.why_not() and login_item.LoginItem().installed

    def why_not_shared(self) -> str:
        """Why this machine has no login items, in a sentence; empty on a Mac."""
        return login_item.why_not()

    def share_at_login(self, *, on: bool) -> None:
        """Switch the login item. Raises :class:`runtime.errors.PomonaError` if that cannot be."""
        login_item.switch(on=on)
