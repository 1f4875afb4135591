"""``pomona`` without a command: the window on this machine's own node, whose agent is started if none runs."""

from __future__ import annotations

import select
import socket
import subprocess
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from resources.starting import pomona
from runtime.agent.folder import data_folder, open_home
from runtime.agent.local import local_port
from runtime.agent.messages import AgentStarted
from runtime.agent.window_lock import WindowIsOpen, window_lock
from runtime.cli.display import has_display
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_LOG_NAME = "agent.log"
_DIAL_SECONDS = 1.0
_START_SECONDS = 60.0
"""Macs check what they run for the first time, which takes a while; past this something is wrong."""


def run_window_here(open_window: Callable[..., int]) -> int:
    """Open the window, and start the agent behind it; returns when the window is closed. Raises :class:`PomonaError`.

    The agent outlives the window for as long as a model runs, and ends with the last of both.
    """
    if not has_display():
        raise PomonaError("There is no display here. `pomona --help` lists the commands that need none.")
    home = open_home(data_folder())
    try:
        with window_lock(home.folder):
            return open_window(home.folder, behind=partial(_have_agent, home.folder))
    except WindowIsOpen:
        raise PomonaError("Pomona's window is open already on this machine.") from None


def _somebody_listens(port: int | None) -> bool:
    if port is None:
        return False
    try:
        socket.create_connection(("127.0.0.1", port), _DIAL_SECONDS).close()
    except OSError:
        return False
    return True


def _have_agent(folder: Path) -> None:
    if not _somebody_listens(local_port(folder)):
        _start_agent(folder)


def _start_agent(folder: Path) -> None:
    """Start the agent and wait until it listens: a process of its own, which a crash of the window does not touch."""
    log_file = folder / _LOG_NAME
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            pomona("agent", "--with-window"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdout is not None  # it was asked for
    with process.stdout:
        said, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
        line = process.stdout.readline() if said else b""
    if not said:
        process.kill()
    try:
        msgspec.json.decode(line, type=AgentStarted)
    except msgspec.DecodeError as error:
        process.wait()
        raise PomonaError(f"This machine's agent did not start: {_last_line(log_file)}") from error


def _last_line(log_file: Path) -> str:
    lines = log_file.read_text(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("pomona: ") if lines else f"look at {log_file}."
