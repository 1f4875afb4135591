"""Where models are kept on this machine: in the data folder, or where a person has chosen, such as another disk.

The choice is a file in the data folder, read whenever it matters, so that a running agent follows it. What was kept
before stays where it is and is found there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discovery.files import locked, private_folder, read_small, write_private
from runtime.errors import PomonaError
from runtime.models.store import ModelStore

if TYPE_CHECKING:
    from collections.abc import Sequence

CHOICE_NAME = "models-folder"
USUAL_NAME = "models"
_MAX_BYTES = 8192


class HomeStore(ModelStore):
    """The models of one data folder, wherever they are kept."""

    def __init__(self, home: Path) -> None:
        super().__init__(home / USUAL_NAME)
        self._home = home

    @property
    def roots(self) -> Sequence[Path]:
        chosen = chosen_folder(self._home)
        return (self.root,) if chosen is None else (chosen, self.root)

    def writable_root(self) -> Path:
        """Where new models go. Raises :class:`PomonaError` if that folder is not there: its disk may be away."""
        chosen = chosen_folder(self._home)
        if chosen is not None and not chosen.is_dir():
            raise PomonaError(f"The models' folder {chosen} is not there; connect its disk, or choose another folder.")
        return chosen or self.root


def models_folder(home: Path) -> Path:
    """Where new models go."""
    return chosen_folder(home) or home / USUAL_NAME


def chosen_folder(home: Path) -> Path | None:
    """What a person has chosen; None for the usual place."""
    try:
        named = read_small(home / CHOICE_NAME, _MAX_BYTES).decode().strip()
    except (OSError, ValueError):
        return None
    return Path(named) if Path(named).is_absolute() else None


def choose_folder(home: Path, folder: Path | None) -> None:
    """Keep new models there, None for the usual place. Raises :class:`PomonaError` if nothing can be written there."""
    try:
        private_folder(home)
        if folder is not None:
            folder = folder.absolute()
            probe = folder / ".pomona-can-write"
            probe.touch()
            probe.unlink()
    except OSError as error:
        raise PomonaError(f"Nothing can be written to {folder or home} ({error.strerror}).") from error
    with locked(home):
        if folder is None or folder == home / USUAL_NAME:
            (home / CHOICE_NAME).unlink(missing_ok=True)
        else:
            write_private(home / CHOICE_NAME, str(folder).encode())
