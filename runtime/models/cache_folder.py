"""Where Pomona keeps what it can make again."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Where Pomona keeps what it can make again: ``XDG_CACHE_HOME`` if set, else where the system wants it.

    On a Mac it is in Pomona's one folder, so that deleting that leaves nothing.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():  # the XDG base directory specification says to ignore relative ones
        return given / "pomona"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Pomona" / "cache"
    return Path.home() / ".cache" / "pomona"
