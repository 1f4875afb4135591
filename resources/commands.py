"""Runs the system's own commands off the loop, each with a time limit. One that fails gives None."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from dataclasses import dataclass

MAX_OUTPUT_BYTES = 8 << 20
_END_SECONDS = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Command:
    """What to run and how long to wait for it."""

    words: tuple[str, ...]
    limit_seconds: float = 2.0
    any_status: bool = False
    """Take the output even if the command ends with an error, as ``sysctl`` does when one of many names is unknown."""


async def run_command(command: Command) -> str | None:
    """The standard output of a command; None if it is not there, fails, takes too long or says too much.

    It runs in a session of its own, and nothing of it is left when this returns. In English wherever it can.
    """
    name = command.words[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *command.words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C", "LANG": "C"},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        _log.debug("%s tells nothing: %s", name, error)
        return None
    try:
        async with asyncio.timeout(command.limit_seconds):
            output = await _read(process)
            status = await process.wait()
    except TimeoutError:
        _log.debug("%s tells nothing within %s s", name, command.limit_seconds)
        return None
    finally:
        await _end(process)
    if output is None or (status != 0 and not command.any_status):
        _log.debug("%s tells nothing: status %s", name, status)
        return None
    return output.decode(errors="replace")


async def _read(process: asyncio.subprocess.Process) -> bytes | None:
    """All of the output, or None beyond ``MAX_OUTPUT_BYTES``; the process is ended then."""
    assert process.stdout is not None  # it was asked for
    output = bytearray()
    while chunk := await process.stdout.read(1 << 16):
        if len(output) <= MAX_OUTPUT_BYTES:
            output += chunk
        else:
            _kill(process)  # and read on to the end: a pipe that nobody empties is never closed
    return bytes(output) if len(output) <= MAX_OUTPUT_BYTES else None


async def _end(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None  # it was asked for
    if process.returncode is not None and process.stdout.at_eof():
        return
    _kill(process)  # a child of it may hold the pipe although it is gone itself
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            while await process.stdout.read(1 << 16):
                pass
            await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses the group of a zombie
        os.killpg(process.pid, signal.SIGKILL)
