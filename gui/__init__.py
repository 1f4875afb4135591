"""What a person sees. It renders what the other rooms decide, and sends intents."""

from __future__ import annotations

import ctypes
import sys


def _keep_constants_alive() -> None:
    """Give Python's constants more references than Qt can lose.

    PySide6 6.12.0 hands out None and True without counting the reference. Python 3.12 and later do not count references
    to them; 3.11 does, and ends the process when none is left, after some thousand calls. 6.11 has no such fault.
    """
    for constant in (None, True, False, NotImplemented, ...):
        references = ctypes.c_ssize_t.from_address(id(constant))
        references.value += 1 << 40


if sys.version_info < (3, 12):
    _keep_constants_alive()
