"""``pomona check`` as a process of its own, for a window: started, waited for, and ended when nobody wants it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

import msgspec

from resources import starting
from runtime.check.result import CheckResult, split_of
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.planning.values import Plan

_END_SECONDS = 10.0
"""How long a check that is cancelled may take to end its workers."""


async def check_in_process(folder: Path, plan: Plan) -> CheckResult:
    """Check ``plan`` with ranks on this machine. A refusal is a result too.

    Cancelling ends the process with all of its workers. Raises :class:`PomonaError` if it ends without a result.
    """
    split = split_of(plan)
    how = ["--ranks", str(len(split))] if plan.mode == "tensor" else ["--split", ",".join(map(str, split))]
    process = await asyncio.create_subprocess_exec(
        *starting.pomona("check", str(folder), "--mode", plan.mode, *how, "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        said, _ = await process.communicate()
    finally:
        await _end(process)
    try:
        return msgspec.json.decode(said, type=CheckResult)
    except msgspec.DecodeError as error:
        raise PomonaError("The check ended without a result; the log may say why.") from error


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)  # as Ctrl-C does: it ends its workers first
    try:
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()  # its workers end with the pipes that it held
        await process.wait()
