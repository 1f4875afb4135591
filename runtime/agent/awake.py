"""Keeps a Mac awake for as long as a worker lives, by the system's own caffeinate, which ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from asyncio.subprocess import DEVNULL
from typing import Self

log = logging.getLogger(__name__)


class Awake:
    """A running caffeinate: neither idle sleep, nor disks at rest, nor sleep while on mains."""

    def __init__(self, process: asyncio.subprocess.Process | None) -> None:
        self._process = process

    @classmethod
    async def start(cls, pid: int) -> Self:
        """Until the process ``pid`` is gone. A machine without caffeinate sleeps when it wants to."""
        try:
            process = await asyncio.create_subprocess_exec(
                "caffeinate", "-i", "-m", "-s", "-w", str(pid),
                stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            log.warning("this machine may fall asleep while a model is loaded: caffeinate %s", error.strerror)
            process = None
        return cls(process)

    async def close(self) -> None:
        """Its process is gone, so that this one is about to end; makes sure of it."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            await self._process.wait()
