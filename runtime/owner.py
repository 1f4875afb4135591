"""A process that belongs to another ends with it: the owner holds the other end of standard input."""

from __future__ import annotations

import asyncio
import sys


async def gone() -> None:
    """Return when the owner closes the pipe, or is gone itself."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        while await reader.read(1024):
            pass
    finally:
        transport.close()
