"""What Linux says of itself in ``/proc``. Pure functions; None for text that they do not understand."""

from __future__ import annotations

from resources.mac.memory import Swap
from resources.mac.reading import whole


def swap_from_meminfo(output: str) -> Swap | None:
    """``/proc/meminfo``, whose kB are KiB."""
    total = whole(r"^SwapTotal:\s+([0-9]+) kB$", output)
    free = whole(r"^SwapFree:\s+([0-9]+) kB$", output)
    if total is None or free is None or free > total:
        return None
    return Swap(total << 10, (total - free) << 10)
