"""Fetches the packages of the light app at its first run, shows how far it is, and starts the app again.

The launcher runs it, in its own process, by the new environment's Python: nothing but the standard library is there.

    first_setup.py UV RESOURCES ENVIRONMENT [WORDS OF THE APP...]

With words, as when the app is run in a terminal, it writes lines; without, it shows a window (tkinter is part of the
Python that uv fetches). When all is there it leaves the file ``ready`` beside the environment, which the launcher
looks for, and what earlier versions of the app fetched goes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

LAUNCHER_VARIABLE = "POMONA_LAUNCHER"
LOGIN_ITEM = "app.pomona.agent"
STEP_SECONDS = 0.5
SPEED_SECONDS = 10.0
"""The rate that is shown is that of so many last seconds."""


@dataclass(frozen=True)
class Places:
    """What the launcher says."""

    uv: Path
    resources: Path
    environment: Path

    @property
    def ready(self) -> Path:
        """Exists when the environment is whole."""
        return self.environment.parent / "ready"

    @property
    def cache(self) -> Path:
        """Where uv puts what it fetches; named by the launcher, in the app's own folder."""
        return Path(os.environ["UV_CACHE_DIR"])


def commands(places: Places) -> list[list[str]]:
    """What makes the environment whole: the locked packages that fit this machine, then Pomona itself."""
    into = ["--quiet", "--compile-bytecode", "--python", str(places.environment)]  # or each first start would do it
    (wheel,) = places.resources.glob("pomona-*.whl")
    lock = str(places.resources / "requirements.txt")
    return [
        [str(places.uv), "pip", "sync", *into, "--require-hashes", lock],
        [str(places.uv), "pip", "install", *into, "--no-deps", "--offline", str(wheel)],
    ]


class Setup(threading.Thread):
    """Runs the commands; tells how far it is."""

    def __init__(self, places: Places) -> None:
        super().__init__(daemon=True)
        self._places = places
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self.cancelled = False
        self.failure = ""
        """What went wrong, in uv's words; empty while nothing has."""

    def run(self) -> None:
        """In its thread."""
        try:
            for command in commands(self._places):
                self._run(command)
                if self.failure or self.cancelled:
                    return
            self._places.ready.touch()
            restart_login_item()
            forget_others(self._places)
        except (OSError, ValueError) as error:
            self.failure = str(error)

    def cancel(self) -> None:
        """End the command that runs; what is fetched stays for the next time."""
        with self._lock:
            self.cancelled = True
            if self._process is not None:
                self._process.terminate()

    def _run(self, command: list[str]) -> None:
        with self._lock:
            if self.cancelled:
                return
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        _, said = self._process.communicate()
        if self._process.returncode and not self.cancelled:
            self.failure = " ".join(said.split())[-300:] or f"uv ended with status {self._process.returncode}"


def restart_login_item() -> None:
    """The agent of an earlier version, if one is shared at login, runs on what :func:`forget_others` deletes."""
    if sys.platform == "darwin":
        service = f"gui/{os.getuid()}/{LOGIN_ITEM}"
        subprocess.run(["/bin/launchctl", "kickstart", "-k", service], capture_output=True, check=False)


def forget_others(places: Places) -> None:
    """What earlier versions fetched, and the copies in uv's cache."""
    shutil.rmtree(places.cache, ignore_errors=True)
    ours = {places.environment.parent.name, "python"}
    for other in places.environment.parents[1].iterdir():
        if other.name not in ours:
            shutil.rmtree(other, ignore_errors=True)


def size_of(folder: Path) -> int:
    """Bytes of all files below, each once, however many names it has."""
    seen: dict[tuple[int, int], int] = {}
    for parent, _folders, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(parent, name))  # noqa: PTH118  Path takes as long as all the rest
            except OSError:  # moved meanwhile
                continue
            seen[found.st_dev, found.st_ino] = found.st_size
    return sum(seen.values())


class Meter:
    """From bytes at times to words."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self._samples: deque[tuple[float, int]] = deque()

    def share(self, done_bytes: int) -> float:
        """Between 0 and 1; never quite 1, because the total is what another machine measured."""
        return min(done_bytes / self.total_bytes, 0.99)

    def words(self, seconds: float, done_bytes: int) -> str:
        """``120 of about 660 MB, 12.3 MB/s, about 44 s left``."""
        self._samples.append((seconds, done_bytes))
        while seconds - self._samples[0][0] > SPEED_SECONDS:
            self._samples.popleft()
        first_seconds, first_bytes = self._samples[0]
        words = f"{done_bytes / 1e6:.0f} of about {self.total_bytes / 1e6:.0f} MB"
        if seconds <= first_seconds or done_bytes <= first_bytes:
            return words
        rate = (done_bytes - first_bytes) / (seconds - first_seconds)
        left = max(self.total_bytes - done_bytes, 0) / rate
        return f"{words}, {rate / 1e6:.1f} MB/s, about {left:.0f} s left"


def in_terminal(setup: Setup, places: Places, meter: Meter) -> None:
    """A line now and then."""
    while setup.is_alive():
        setup.join(4 * STEP_SECONDS)
        if setup.is_alive():
            sys.stderr.write(f"Pomona: {meter.words(time.monotonic(), size_of(places.cache))}\n")


def in_window(setup: Setup, places: Places, meter: Meter) -> None:
    """A small window with a bar and Cancel."""
    import tkinter  # not in every Python
    from tkinter import ttk

    window = tkinter.Tk()
    window.title("Setting up Pomona")
    window.resizable(width=False, height=False)
    frame = ttk.Frame(window, padding=20)
    frame.grid()
    ttk.Label(frame, text="Pomona fetches what it is built on. This happens once.").grid(sticky="w")
    bar = ttk.Progressbar(frame, length=380, maximum=1.0)
    bar.grid(pady=10)
    line = ttk.Label(frame, text="")
    line.grid(sticky="w")
    ttk.Button(frame, text="Cancel", command=setup.cancel).grid(sticky="e")
    window.protocol("WM_DELETE_WINDOW", setup.cancel)

    def look() -> None:
        if not setup.is_alive():
            window.destroy()
            return
        done_bytes = size_of(places.cache)
        bar["value"] = meter.share(done_bytes)
        line["text"] = meter.words(time.monotonic(), done_bytes)
        window.after(round(1000 * STEP_SECONDS), look)

    look()
    window.mainloop()


def say_failure(words: str) -> None:
    """A dialog on a Mac, and a line."""
    sentence = f"Pomona could not fetch what it needs: {words}"
    sys.stderr.write(f"{sentence}\n")
    if sys.platform == "darwin":
        script = 'on run argv\ndisplay alert "Pomona" message (item 1 of argv) as critical\nend run'
        subprocess.run(["/usr/bin/osascript", "-e", script, sentence], check=False)


def main(arguments: list[str]) -> int:
    """Set up, then become the app; returns only if that does not come about."""
    uv, resources, environment, *words = arguments
    places = Places(Path(uv), Path(resources), Path(environment))
    meter = Meter(json.loads((places.resources / "sizes.json").read_text())["unpacked_bytes"])
    setup = Setup(places)
    setup.start()
    show = in_terminal if words or sys.platform != "darwin" else in_window
    show(setup, places, meter)
    setup.join()
    if setup.failure:
        say_failure(setup.failure)
        return 1
    if not setup.cancelled:
        launcher = os.environ[LAUNCHER_VARIABLE]
        os.execv(launcher, [launcher, *words])  # noqa: S606  the app itself
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
