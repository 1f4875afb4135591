"""What a person has set of a plan, as one frozen value: undo and redo go from one to another. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gui.split.model import Split

if TYPE_CHECKING:
    from runtime.planning.plan import Goal, UnusedNode


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The split, and all that decides whether it fits and how fast it is."""

    split: Split = field(default_factory=lambda: Split(()))
    order: tuple[str, ...] = ()
    """Node ids in model order; empty for the nodes as they come."""
    context_tokens: int | None = None
    """None: what the planner takes if nobody says."""
    reserve_cut_bytes: int = 0
    """Kept free on each node less than usual."""
    needed: frozenset[str] = frozenset()
    """Nodes that were put back in: they take part whatever it costs."""
    goal: Goal | None = None
    """What the split is best at; None once a boundary was moved."""
    unused: tuple[UnusedNode, ...] = ()
    """Nodes that the best split leaves out, and why."""
