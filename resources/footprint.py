"""What a process truly takes of a machine's memory: its physical footprint, which its resident size is not.

On a Mac the resident size counts files that are only mapped, and leaves out what was compressed or belongs to the GPU.
"""

from __future__ import annotations

import ctypes
import logging
import struct
import sys
from pathlib import Path

from resources.mac.reading import whole

_RUSAGE_BYTES = 512
"""More than any version of the structure has."""
_FOOTPRINT_OFFSET = 72
"""Of ``ri_phys_footprint`` in ``rusage_info_v0``: 16 bytes of UUID and seven counters come first (sys/resource.h)."""
_log = logging.getLogger(__name__)


def footprint_bytes(pid: int) -> int | None:
    """Of one process; None if it is gone, someone else's, or the system does not tell."""
    try:
        if sys.platform == "darwin":
            return footprint_from_rusage(_rusage(pid))
        return footprint_from_status((Path("/proc") / str(pid) / "status").read_text())
    except (OSError, AttributeError) as error:  # a libproc without the function, too
        _log.debug("process %d tells nothing of its memory: %s", pid, error)
        return None


def footprint_from_status(output: str) -> int | None:
    """Linux's ``/proc/PID/status``: anonymous and shared memory, and what of it is in the swap, in KiB."""
    parts = [whole(rf"^{name}:\s+([0-9]+) kB$", output) for name in ("RssAnon", "RssShmem", "VmSwap")]
    known = [part for part in parts if part is not None]
    return sum(known) << 10 if known else None


def footprint_from_rusage(output: bytes) -> int | None:
    """A Mac's ``rusage_info_v0``; None if it is cut off."""
    if len(output) < _FOOTPRINT_OFFSET + 8:
        return None
    return int(struct.unpack_from("<Q", output, _FOOTPRINT_OFFSET)[0])


def _rusage(pid: int) -> bytes:
    """What macOS's libproc says of a process. Raises :class:`OSError`."""
    buffer = ctypes.create_string_buffer(_RUSAGE_BYTES)
    status = ctypes.CDLL("/usr/lib/libproc.dylib", use_errno=True).proc_pid_rusage(pid, 0, buffer)
    if status != 0:
        raise OSError(ctypes.get_errno(), "proc_pid_rusage")
    return buffer.raw
