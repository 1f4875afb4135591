"""What is said about the memory of a node: JSON bodies."""

from __future__ import annotations

from typing import Annotated

import msgspec

CAP_PATH = "/v1/memory-cap"


class MemoryCapOrder(msgspec.Struct, frozen=True):
    """Pomona may use at most so much of the node's memory from now on; None is the usual amount again."""

    cap_bytes: Annotated[int, msgspec.Meta(ge=0, le=1 << 50)] | None
