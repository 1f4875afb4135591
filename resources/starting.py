"""How one process of Pomona starts another, and what a login item starts: only this module knows how it was installed.

Pomona runs from a checkout or an installed package (by a Python), or frozen into an app, where there is no Python to
call: the app's own executable then takes the same words.
"""

from __future__ import annotations

import os
import sys

LAUNCHER_VARIABLE = "POMONA_LAUNCHER"
"""Set by the launcher of the light app (``packaging/mac/launcher.c``) to its own path."""


def is_frozen() -> bool:
    """Whether this is the self-contained app, with its Python inside the executable."""
    return bool(getattr(sys, "frozen", False))


def pomona(*words: str) -> tuple[str, ...]:
    """The command line that runs ``pomona WORDS`` in another process, with the code that runs here."""
    if is_frozen():
        return (sys.executable, *words)
    return (sys.executable, "-P", "-m", "pomona", *words)


def engine(module: str, *arguments: str) -> tuple[str, ...]:
    """The command line that runs one of the engine's modules (``cache_probe``) by itself.

    For whoever must not import MLX, and so asks another process.
    """
    return pomona("engine", module, *arguments)


def launcher(*words: str) -> tuple[str, ...]:
    """The command line for ``pomona WORDS`` that macOS takes for the app: its own executable, where there is an app.

    Whoever is started by the system rather than by us needs it: permissions belong to the bundle of the executable.
    """
    outer = os.environ.get(LAUNCHER_VARIABLE)
    return (outer, *words) if outer else pomona(*words)
