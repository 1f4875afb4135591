"""The front door: ``pomona`` and its commands.

Looks at the first word only, so that a worker never imports the window.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def main() -> int:
    """Entry point of the ``pomona`` command; returns the exit status."""
    if sys.argv[1:2] == ["worker"]:
        from runtime.engine.worker import main as run_worker

        return run_worker()
    from runtime.cli.commands import main as run_command

    return run_command(sys.argv[1:], _open_window)


def _open_window(home: Path, model_folder: Path) -> int:
    """Handed down to the commands, which know nothing of the window."""
    from gui.app import run_window

    return run_window(home, model_folder)


if __name__ == "__main__":
    sys.exit(main())
