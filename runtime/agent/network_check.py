"""Whether this machine finds others on its network: the one test behind the window and ``pomona doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discovery.local_network import judge
from discovery.network_test import look
from discovery.trust import TrustStore

if TYPE_CHECKING:
    from pathlib import Path

    from discovery.local_network import Verdict


def check_network(folder: Path) -> Verdict:
    """Takes some two seconds. ``folder`` is the data folder, whose paired machines should be there; it need not exist.

    Raises :class:`OSError` if the folder cannot be used.
    """
    paired = TrustStore(folder).paired if folder.is_dir() else ()
    return judge(look([address for node in paired for address in node.addresses]))
