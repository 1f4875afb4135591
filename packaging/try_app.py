"""Tries the self-contained app as ``make app`` leaves it, the way a person's machine would run it.

Nothing of this machine is lent to it: an empty home, no PATH, no variables. Its window opens (offscreen), three virtual
nodes start from the bundle, the demo model answers a question, and the window closes. Prints size and times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[1]
LIMIT_SECONDS = 300
END_SECONDS = 20.0


def executable() -> Path:
    """Of the app that was built last."""
    return ROOT / ("dist/Pomona.app/Contents/MacOS/Pomona" if sys.platform == "darwin" else "dist/pomona/pomona")


def tree_bytes(folder: Path) -> int:
    """All files, links not followed."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())


def still_running(program: Path) -> list[psutil.Process]:
    """Processes of the bundle, after a while in which they may end."""
    deadline = time.monotonic() + END_SECONDS
    while True:
        found = [each for each in psutil.process_iter(["exe"]) if each.info["exe"] == str(program)]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.2)


def try_app(program: Path) -> dict[str, Any]:
    """One run of the demo from the bundle; what it found. Raises :class:`SystemExit` with what is wrong."""
    with tempfile.TemporaryDirectory(prefix="pomona-try-") as folder:
        home, scratch = Path(folder, "home"), Path(folder, "tmp")
        home.mkdir()
        scratch.mkdir()
        environment = {"HOME": str(home), "TMPDIR": str(scratch), "PATH": "", "QT_QPA_PLATFORM": "offscreen"}
        done = subprocess.run(
            [program, "demo", "--self-test"],
            env=environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        left = still_running(program)
        if left:
            raise SystemExit(f"Processes are left: {left}")
        if any(scratch.iterdir()):
            raise SystemExit(f"Files are left: {sorted(map(str, scratch.rglob('*')))}")
        if done.returncode or not done.stdout:
            raise SystemExit(f"The app ended with status {done.returncode}: {done.stdout.decode(errors='replace')}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        found["kept"] = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())
        return found


def main() -> int:
    """Try it, and say what was seen."""
    program = executable()
    if not os.access(program, os.X_OK):
        raise SystemExit(f"{program} is not there; `make app` builds it.")
    found = try_app(program)
    folder = program.parents[2] if sys.platform == "darwin" else program.parent
    sys.stdout.write(
        f"Size: {tree_bytes(folder) / 1e6:.0f} MB. Window after {found['window_seconds']} s "
        f"({found['window_cpu_seconds']} s of CPU); answer after "
        f"{found['answer_seconds']} s, the demo model's making included: {found['answer']}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
