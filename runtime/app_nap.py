"""App Nap slows the timers of an app that nobody looks at: its peers would take it for gone."""

from __future__ import annotations

import sys


def stay_responsive() -> None:
    """Tell macOS that this process does what a person waits for. The Mac itself may still sleep."""
    if sys.platform == "darwin":
        import appnope

        appnope.nope()
