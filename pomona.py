"""The front door: ``pomona``, which opens the window, and its commands.

Looks at the first word only, so that a worker never imports the window. Also the entry of the frozen app, which starts
every process of Pomona by the same words (``resources/starting.py``).
"""

from __future__ import annotations

import runpy
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def main() -> int:
    """Entry point of the ``pomona`` command; returns the exit status."""
    match sys.argv[1:]:
        case ["worker", *_]:
            from runtime.engine.worker import main as run_worker

            return run_worker()
        case ["engine", module, *arguments]:  # started by Pomona itself: python -m runtime.engine.MODULE
            sys.argv = [module, *arguments]
            runpy.run_module(f"runtime.engine.{module}", run_name="__main__", alter_sys=True)
            return 0
        case words:
            from runtime.cli.commands import main as run_command

            return run_command(words, _open_window)


def _open_window(
    home: Path, *, behind: Callable[[], None] | None = None, demo: bool = False, self_test: bool = False
) -> int:
    """Handed down to the commands, which know nothing of the window."""
    from gui.app import run_window

    return run_window(home, behind=behind, demo=demo, self_test=self_test)


if __name__ == "__main__":
    sys.exit(main())
