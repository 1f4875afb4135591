"""Who this node is: an id that stays, and the name that people gave the machine.

The id lives in ``node.json`` in the agent's data folder.
"""

from __future__ import annotations

import fcntl
import logging
import os
import platform
import secrets
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec

from discovery.announcement import clean_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_NAME = "node.json"

_MAX_FILE_BYTES = 4096
_NAME_SECONDS = 2.0
_log = logging.getLogger(__name__)


class _NodeFile(msgspec.Struct, frozen=True):
    """What ``node.json`` holds."""

    node_id: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    name: str | None = None
    """A name that the person chose instead of the machine's."""


@dataclass(frozen=True, slots=True)
class Identity:
    """This node, as others will know it."""

    node_id: str
    name: str


def load_identity(folder: Path) -> Identity:
    """The identity kept in ``folder``, made there at the first call. Two processes that call at once get the same one.

    A damaged file is moved aside and a new identity made. Raises :class:`OSError` if the folder cannot be read or
    written: an id that would be forgotten is none.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    with _locked(folder):
        kept = _read(folder / FILE_NAME)
        if kept is None:
            kept = _NodeFile(node_id=secrets.token_hex(32))
            _write(folder / FILE_NAME, msgspec.json.encode(kept))
    return Identity(kept.node_id, clean_name(kept.name or "") or machine_name())


def machine_name() -> str:
    """What people call this machine: the Mac's computer name, elsewhere the host name without its domain."""
    name = _computer_name() if sys.platform == "darwin" else ""
    return clean_name(name) or clean_name(platform.node().partition(".")[0]) or "Unnamed"


def _computer_name() -> str:
    try:
        asked = subprocess.run(
            ["scutil", "--get", "ComputerName"], capture_output=True, timeout=_NAME_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        _log.debug("scutil does not tell the computer's name: %s", error)
        return ""
    return asked.stdout.decode(errors="replace")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # ends with the descriptor, so a crash leaves no lock behind
        yield
    finally:
        os.close(descriptor)


def _read(path: Path) -> _NodeFile | None:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    try:
        if len(text) > _MAX_FILE_BYTES:
            raise msgspec.ValidationError(f"more than {_MAX_FILE_BYTES} bytes")
        kept = msgspec.json.decode(text, type=_NodeFile)
    except (msgspec.DecodeError, RecursionError) as error:
        aside = path.with_suffix(".damaged.json")
        path.replace(aside)
        _log.warning("%s is damaged (%s): moved to %s, this node gets a new id", path, error, aside.name)
        return None
    path.chmod(0o600)
    return kept


def _write(path: Path, text: bytes) -> None:
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123  of a descriptor
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
