"""What a person has said that Pomona may use at most of this machine's memory; kept in the node's data folder."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

import msgspec

from discovery.files import locked, private_folder, read_small, write_private

if TYPE_CHECKING:
    from pathlib import Path

CAP_NAME = "memory-cap.json"
_MAX_FILE_BYTES = 1024
_log = logging.getLogger(__name__)


class _Kept(msgspec.Struct, frozen=True):
    cap_bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None


class MemoryCap:
    """One number in a file, or none. The agent of the node alone changes it."""

    def __init__(self, data_folder: Path) -> None:
        self._folder = data_folder
        self._path = data_folder / CAP_NAME
        self._bytes = self._read()

    @property
    def chosen_bytes(self) -> int | None:
        """None while nobody has chosen."""
        return self._bytes

    def choose(self, cap_bytes: int | None) -> None:
        """Keep it; None is back to the usual. Raises :class:`OSError`."""
        private_folder(self._folder)
        with locked(self._folder):
            write_private(self._path, msgspec.json.encode(_Kept(cap_bytes)))
        self._bytes = cap_bytes

    def _read(self) -> int | None:
        try:
            return msgspec.json.decode(read_small(self._path, _MAX_FILE_BYTES), type=_Kept).cap_bytes
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            _log.warning("%s cannot be used: %s", self._path, error)
            return None
