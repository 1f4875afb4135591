"""The key that opens this machine's agent, until pairing gives each node a certificate."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

from runtime.errors import PomonaError

KEY_VARIABLE = "POMONA_KEY"
"""Set for agents that a demo starts; others read the key file of the person who runs them."""
_KEY_BYTES = 32


def data_folder() -> Path:
    """Where Pomona keeps what has to stay: one folder, as each system wants it."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Pomona"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "pomona"


def new_key() -> str:
    """A fresh key."""
    return secrets.token_urlsafe(_KEY_BYTES)


def load_key(folder: Path) -> str:
    """The key from the environment, or the one kept in ``folder``, made there the first time."""
    if key := os.environ.get(KEY_VARIABLE):
        return key
    path = folder / "key"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123  of a descriptor
                file.write(new_key())
        except FileExistsError:
            pass
        key = path.read_text().strip()
    except OSError as error:
        raise PomonaError(
            f"The folder {folder} cannot be used ({error.strerror}); make it yours and try again."
        ) from error
    if not key:
        raise PomonaError(f"The key file {path} is empty; delete it and start Pomona again.")
    return key
