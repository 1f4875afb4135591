"""Whether the memory that workers held came back when they ended."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import msgspec
import psutil

from resources.node import Count
from resources.survey import ask_pages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_NOISE_BYTES, _NOISE_SHARE = 512 << 20, 5
"""Other programs take and give back meanwhile: less than this, or a fifth, is not missed."""
_LIMIT_SECONDS = 3.0
_LOOK_SECONDS = 0.2


class MemoryReturn(msgspec.Struct, frozen=True):
    """What workers held together, as the system counted it, and by how much more is unused since."""

    held_bytes: Count
    returned_bytes: Count

    @property
    def missing_bytes(self) -> int:
        """What did not come back; 0 if that may be other programs' doing."""
        missing = self.held_bytes - self.returned_bytes
        return missing if missing > _noise(self.held_bytes) else 0


async def unused_bytes() -> int:
    """What nobody on this machine has now."""
    memory = psutil.virtual_memory()
    if sys.platform == "darwin":
        pages = await ask_pages()
        if pages is not None:
            return max(memory.total - pages.used_bytes, 0)
    available: int = memory.available
    return available


async def watch_return(
    held_bytes: int,
    unused_before: int,
    unused: Callable[[], Awaitable[int]] = unused_bytes,
    limit_seconds: float = _LIMIT_SECONDS,
) -> MemoryReturn:
    """To be called when the workers are gone: waits a little for what is missing, and says how much came back."""
    over = time.monotonic() + limit_seconds
    while True:
        returned = min(max(await unused() - unused_before, 0), held_bytes)
        if held_bytes - returned <= _noise(held_bytes) or time.monotonic() >= over:
            return MemoryReturn(held_bytes, returned)
        await asyncio.sleep(_LOOK_SECONDS)


def _noise(held_bytes: int) -> int:
    return max(_NOISE_BYTES, held_bytes // _NOISE_SHARE)
