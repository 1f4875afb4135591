"""Memory that was freed and that the C library keeps for later."""

from __future__ import annotations

import ctypes
import sys


def trim_heap() -> None:
    """Give it back to the system, in some milliseconds: glibc's malloc_trim(3). Elsewhere nothing is done.

    For a process that was busy once and then waits. glibc itself gives back only what lies at the end of its heap, so
    one small thing that stays keeps all that was freed before it.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # not every Linux has glibc
        if trim is not None:
            trim(0)
