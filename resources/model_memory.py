"""How much memory a model may take, by arithmetic alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resources.mac.memory import Pages


def mac_memory_for_model(
    total_bytes: int, pages: Pages, gpu_limit_bytes: int | None = None, gpu_active_bytes: int = 0
) -> int:
    """Bytes that a model may take on a Mac now: what others leave, and no more than Metal lets the GPU use.

    Others have (internal - purgeable) + wired + compressor, as Activity Monitor counts. psutil's ``available`` leaves
    the compressor out: it was seen to promise 18 GB on a Mac with 22.6 GB compressed. ``gpu_limit_bytes`` is
    ``max_recommended_working_set_size``; of it our own workers hold ``gpu_active_bytes`` already. At least 0.
    """
    left = total_bytes - pages.used_bytes
    if gpu_limit_bytes is not None:
        left = min(left, gpu_limit_bytes - gpu_active_bytes)
    return max(left, 0)
