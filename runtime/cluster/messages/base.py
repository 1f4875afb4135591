"""What every message is."""

from __future__ import annotations

import msgspec


class Message(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of everything on the wire."""
