"""Looks whether the memory that workers held comes back when they end."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import psutil

from resources.memory_return import MemoryReturn, noise_bytes
from resources.survey import ask_pages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_LIMIT_SECONDS = 3.0
_LOOK_SECONDS = 0.2


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
        if held_bytes - returned <= noise_bytes(held_bytes) or time.monotonic() >= over:
            return MemoryReturn(held_bytes, returned)
        await asyncio.sleep(_LOOK_SECONDS)
