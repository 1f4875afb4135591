"""Whether the memory that workers held came back when they ended: the verdict. ``memory_watch`` looks."""

from __future__ import annotations

import msgspec

from resources.node import Count

_NOISE_BYTES, _NOISE_SHARE = 512 << 20, 5
"""Other programs take and give back meanwhile: less than this, or a fifth, is not missed."""


class MemoryReturn(msgspec.Struct, frozen=True):
    """What workers held together, as the system counted it, and by how much more is unused since."""

    held_bytes: Count
    returned_bytes: Count

    @property
    def missing_bytes(self) -> int:
        """What did not come back; 0 if that may be other programs' doing."""
        missing = self.held_bytes - self.returned_bytes
        return missing if missing > noise_bytes(self.held_bytes) else 0


def noise_bytes(held_bytes: int) -> int:
    """How much of what workers held may be other programs' doing."""
    return max(_NOISE_BYTES, held_bytes // _NOISE_SHARE)
