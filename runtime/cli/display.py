"""Whether a window can be opened."""

from __future__ import annotations

import os
import sys


def has_display() -> bool:
    """Whether there is a screen here to open a window on."""
    if sys.platform == "darwin":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
