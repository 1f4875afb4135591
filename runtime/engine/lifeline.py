"""A worker must not outlive its agent, whatever happens to either.

The agent holds the other end of the worker's standard input; its end means that the agent is gone. A thread waits for
that. MLX holds the GIL while it connects a ring, so there a C thread of ``faulthandler`` keeps the time instead, and on
Linux the kernel sends SIGKILL when the parent dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent: int) -> None:
    """On Linux, have the kernel end this process when ``parent`` dies; elsewhere the pipe alone does it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the kernel knew
            os._exit(1)


@contextlib.contextmanager
def limit_seconds(seconds: float) -> Iterator[None]:
    """End this process with a stack in its log if the body takes longer, even while something holds the GIL."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
