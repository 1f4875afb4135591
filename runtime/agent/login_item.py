"""“Share this Mac when I log in”: a LaunchAgent of this person's that starts the agent, off until they switch it on.

It is one file, made and removed here. The agent that it starts looks now and then whether the app is still there; when
it was deleted, it removes the file and ends, so that nothing stays behind.
"""

from __future__ import annotations

import asyncio
import os
import plistlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resources import starting
from runtime.agent.folder import data_folder
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Run = Callable[[Sequence[str]], tuple[int, str]]

BUNDLE_ID = "app.pomona.Pomona"
"""Of the app; System Settings lists the login item under its name."""
LABEL = "app.pomona.agent"
LOOK_SECONDS = 60.0
_RESTART_SECONDS = 30
_LAUNCHCTL_SECONDS = 20.0


def launch_agent(command: Sequence[str], log_file: Path) -> dict[str, Any]:
    """The property list (launchd.plist(5)) of a login item that runs ``command``."""
    return {
        "Label": LABEL,
        "ProgramArguments": list(command),
        "AssociatedBundleIdentifiers": [BUNDLE_ID],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},  # after a crash; an agent that was told to end stays ended
        "ThrottleInterval": _RESTART_SECONDS,
        "ProcessType": "Interactive",  # without it macOS slows the work of whoever runs no window
        "LimitLoadToSessionType": "Aqua",
        "StandardErrorPath": str(log_file),
    }


class LoginItem:
    """The file of one person, and launchd's knowledge of it."""

    def __init__(self, folder: Path | None = None, run: Run | None = None) -> None:
        self.path = (folder or Path.home() / "Library" / "LaunchAgents") / f"{LABEL}.plist"
        self._run = run or _launchctl

    @property
    def installed(self) -> bool:
        """Whether it is switched on."""
        return self.path.exists()

    def install(self, command: Sequence[str], log_file: Path) -> None:
        """Write the file and start the agent now, and at each login from now on. Raises :class:`PomonaError`."""
        try:
            log_file.parent.mkdir(parents=True, exist_ok=True)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _write(self.path, plistlib.dumps(launch_agent(command, log_file)))
        except OSError as error:
            raise PomonaError(f"The login item cannot be written to {self.path} ({error.strerror}).") from error
        self._run(["bootout", self._service])  # an earlier one, which may start another place's app
        status, words = self._run(["bootstrap", self._domain, str(self.path)])
        if status:
            self.path.unlink(missing_ok=True)
            raise PomonaError(
                f"macOS did not take the login item ({words or f'launchctl: {status}'}); log in at this Mac's screen "
                "and try again."
            )

    def remove(self) -> None:
        """Delete the file and end the agent that it started; nothing if it was not switched on."""
        was_there = self.installed
        self.path.unlink(missing_ok=True)  # first: an agent that removes its own item ends with the next line
        if was_there:
            self._run(["bootout", self._service])

    @property
    def _domain(self) -> str:
        return f"gui/{os.getuid()}"

    @property
    def _service(self) -> str:
        return f"{self._domain}/{LABEL}"


async def removed_with(program: Path, item: LoginItem, look_seconds: float = LOOK_SECONDS) -> None:
    """Return when ``program`` was deleted and the login item with it; twice missing, because updates replace it."""
    missing = 0
    while missing < 2:
        await asyncio.sleep(look_seconds)
        missing = 0 if await asyncio.to_thread(program.exists) else missing + 1
    item.remove()


def why_not() -> str:
    """Why this machine has no login items, in a sentence; empty on a Mac."""
    if sys.platform == "darwin":
        return ""
    return "Login items are a Mac's; elsewhere, have your system start `pomona agent` at login."


def switch(*, on: bool) -> bool:
    """Share this Mac at login, or no longer; returns whether it was on before. Raises :class:`PomonaError`."""
    if reason := why_not():
        raise PomonaError(reason)
    item = LoginItem()
    was_on = item.installed
    if on:
        item.install(starting.launcher("agent", "--at-login"), data_folder() / "logs" / "agent.log")
    else:
        item.remove()
    return was_on


def _write(path: Path, content: bytes) -> None:
    """As a whole or not at all: launchd may read it at any time."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        file.write(content)
    temporary = Path(file.name)
    temporary.chmod(0o644)  # launchd takes no file that others may write
    temporary.replace(path)


def _launchctl(words: Sequence[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(
            ["launchctl", *words], capture_output=True, text=True, check=False, timeout=_LAUNCHCTL_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, " ".join((done.stderr or done.stdout).split())
