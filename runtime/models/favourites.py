"""The models that a person wants to find again: ``favourites.json`` in the data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from discovery.files import locked, private_folder, read_small, set_aside, write_private
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE_NAME = "favourites.json"
MAX_FAVOURITES = 500
MAX_NAME_LETTERS = 400
_MAX_FILE_BYTES = 1 << 20
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LETTERS)]


class _File(msgspec.Struct, frozen=True):
    models: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=MAX_FAVOURITES)] = ()


class Favourites:
    """Names of models as a person gives them: of a hub, or folders. In the order in which they were added."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / FILE_NAME

    def all(self) -> tuple[str, ...]:
        """The names. Raises :class:`PomonaError` if the folder cannot be used."""
        try:
            return msgspec.json.decode(read_small(self._path, _MAX_FILE_BYTES), type=_File).models
        except FileNotFoundError:
            return ()
        except (ValueError, RecursionError) as error:
            set_aside(self._path, "damaged", f"it cannot be read ({error})")
            return ()
        except OSError as error:
            raise self._unusable(error) from error

    def add(self, name: str) -> None:
        """Remember a model. Beyond 500 the oldest goes. Raises :class:`PomonaError`."""
        if not 1 <= len(name) <= MAX_NAME_LETTERS:
            raise PomonaError(f"A model's name has 1 to {MAX_NAME_LETTERS} letters, not {len(name)}.")
        self._write(lambda names: (*(other for other in names if other != name), name)[-MAX_FAVOURITES:])

    def remove(self, name: str) -> None:
        """Forget it. Raises :class:`PomonaError` if it is none."""
        if name not in self.all():
            raise PomonaError(f"{name} is no favourite; `pomona models` shows those that are.")
        self._write(lambda names: tuple(other for other in names if other != name))

    def _write(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        try:
            private_folder(self._folder)
            with locked(self._folder):
                write_private(self._path, msgspec.json.encode(_File(change(self.all()))))
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> PomonaError:
        return PomonaError(f"The folder {self._folder} cannot be used ({error.strerror}).")
