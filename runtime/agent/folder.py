"""Where Pomona keeps what has to stay."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from discovery.home import Home
from runtime.errors import PomonaError

HOME_VARIABLE = "POMONA_HOME"


def data_folder() -> Path:
    """One folder for this person on this machine, as each system wants it, or the one that ``POMONA_HOME`` names."""
    if named := os.environ.get(HOME_VARIABLE):
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Pomona"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "pomona"


def open_home(folder: Path) -> Home:
    """The node's home in ``folder``. Raises :class:`PomonaError` if the folder cannot be used."""
    try:
        return Home(folder)
    except OSError as error:
        raise PomonaError(
            f"The folder {folder} cannot be used ({error.strerror}); make it yours and try again."
        ) from error
