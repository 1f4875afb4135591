"""Whether a window is open on this machine: a lock that the kernel lets go with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from discovery.files import private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_NAME = "window.lock"
_TRY_SECONDS = 1.0
"""Agents look at the lock for a moment each second, so a window tries for longer than that."""
_PAUSE_SECONDS = 0.05


class WindowIsOpen(Exception):
    """Another process has the window of this data folder."""


@contextmanager
def window_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder`` for the ``with`` block. Raises :class:`WindowIsOpen`, :class:`OSError`."""
    private_folder(folder)
    descriptor = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + _TRY_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise WindowIsOpen from None
            time.sleep(_PAUSE_SECONDS)
        yield
    finally:
        os.close(descriptor)


def window_is_open(folder: Path) -> bool:
    """Whether somebody holds the lock of ``folder`` now."""
    try:
        descriptor = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
