"""``pomona licences``: whose work is in Pomona."""

from __future__ import annotations

import sys

from runtime.licences.components import as_text, components


def run_licences() -> int:
    """Print all of it."""
    sys.stdout.write(as_text(components()))
    return 0
