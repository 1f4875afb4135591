"""``pomona nodes --at-most NODE AMOUNT``: how much of a node's memory Pomona may use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runtime.cluster.node_settings import set_memory_cap
from runtime.cluster.nodes import node_called
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discovery.home import Home
    from runtime.cluster.nodes import KnownNode

USUAL = "usual"
_AMOUNT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?(gb|mb|%)", re.IGNORECASE)
_UNITS = {"gb": 1 << 30, "mb": 1 << 20}


async def choose_cap(home: Home, nodes: Sequence[KnownNode], word: str, amount: str) -> None:
    """Set it for the node called ``word``. Raises :class:`PomonaError` for words that mean nothing."""
    node = node_called(nodes, word)
    cap_bytes = parse_cap(amount, node.resources.memory_total_bytes)
    await set_memory_cap(home, node, cap_bytes)


def parse_cap(text: str, total_bytes: int) -> int | None:
    """Bytes of ``24GB``, ``500MB`` or ``60%``; None for ``usual``. Raises :class:`PomonaError` for anything else."""
    if text.strip().lower() == USUAL:
        return None
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise PomonaError(f"'{text}' is no amount of memory; write 24GB, 500MB, 60% or {USUAL}.")
    number, unit = float(found[1]), found[2].lower()
    cap_bytes = round(total_bytes * number / 100 if unit == "%" else number * _UNITS[unit])
    if cap_bytes > total_bytes:
        raise PomonaError(f"{text} is more than that node has; write {USUAL} or at most 100%.")
    return cap_bytes
