"""This machine's API key: made once, kept where its owner alone can read it, so that clients go on to work."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from discovery.files import locked, private_folder, read_small, write_private
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from pathlib import Path

KEY_FILE = "api-key"
_LIMIT_BYTES = 1024


def own_api_key(folder: Path) -> str:
    """The key that is kept in ``folder``; the first call makes it. Raises :class:`PomonaError`."""
    path = folder / KEY_FILE
    try:
        private_folder(folder)
        with locked(folder):
            if not path.exists():
                write_private(path, f"pomona-{secrets.token_urlsafe(24)}".encode())
            key = read_small(path, _LIMIT_BYTES).decode().strip()
    except (OSError, ValueError) as error:
        raise PomonaError(f"The API key cannot be kept in {path} ({error}).") from error
    if not key:
        raise PomonaError(f"The API key in {path} is empty; delete the file, and another one is made.")
    return key


def renew_api_key(folder: Path) -> str:
    """Make another key; clients that show the one before are refused. Raises :class:`PomonaError`."""
    try:
        private_folder(folder)
        with locked(folder):
            (folder / KEY_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise PomonaError(f"The API key cannot be changed in {folder} ({error.strerror}).") from error
    return own_api_key(folder)
