"""What the window shows of a split before it runs: the planner's verdict, and what each node would hold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from runtime.planning.plan import Plan, PlanNode, Refusal, make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.split.model import Split
    from resources.node import NodeResources
    from runtime.models.layout import ModelLayout
    from runtime.planning.plan import Mode

TIGHT_SHARE = 0.9
"""From this share of its budget on, a node that fits is called tight."""
_UNLIMITED_BYTES = 2**62


class Fit(Enum):
    """How a node takes its share."""

    FITS = "fits"
    TIGHT = "tight"
    OVER = "over"
    LEFT_OUT = "left out"
    UNKNOWN = "unknown"
    """The planner refuses for another reason than memory."""


@dataclass(frozen=True, slots=True)
class Share:
    """One node's part in a split."""

    node: NodeResources
    fit: Fit
    needed_bytes: int = 0
    missing_bytes: int = 0
    first_layer: int = 0
    layer_count: int = 0

    @property
    def last_layer(self) -> int:
        return self.first_layer + self.layer_count - 1


@dataclass(frozen=True, slots=True)
class Preview:
    """The plan that Start would launch, or why there is none, with one share per node in model order."""

    mode: Mode
    verdict: Plan | Refusal
    shares: tuple[Share, ...]

    @property
    def plan(self) -> Plan | None:
        return self.verdict if isinstance(self.verdict, Plan) else None

    @property
    def refusal(self) -> str | None:
        return self.verdict.reason if isinstance(self.verdict, Refusal) else None


def make_preview(layout: ModelLayout, nodes: Sequence[NodeResources], split: Split, mode: Mode) -> Preview:
    """Ask the planner, twice: for its verdict, and without budgets for the bytes, which a refusal does not tell."""
    planned = [PlanNode(node.node_id, node.name, node.memory_available_bytes) for node in nodes]
    unlimited = [msgspec.structs.replace(node, budget_bytes=_UNLIMITED_BYTES) for node in planned]
    counts = split.counts if mode == "pipeline" else None
    verdict = make_plan(layout, planned, counts, mode)
    whole = make_plan(layout, unlimited, counts, mode)
    if isinstance(whole, Refusal):
        return Preview(mode, verdict, tuple(Share(node, Fit.UNKNOWN) for node in nodes))
    held = {
        rank.node_id: (rank.weight_bytes, stage.first_layer, stage.layer_count)
        for stage in whole.stages
        for rank in stage.ranks
    }
    missing = {one.node_id: one.missing_bytes for one in verdict.shortfalls} if isinstance(verdict, Refusal) else {}
    return Preview(mode, verdict, tuple(_share(node, held.get(node.node_id), missing) for node in nodes))


def _share(node: NodeResources, held: tuple[int, int, int] | None, missing: dict[str, int]) -> Share:
    if held is None:
        return Share(node, Fit.LEFT_OUT)
    needed, first_layer, layer_count = held
    if node.node_id in missing:
        fit = Fit.OVER
    else:
        fit = Fit.TIGHT if needed > TIGHT_SHARE * node.memory_available_bytes else Fit.FITS
    return Share(node, fit, needed, missing.get(node.node_id, 0), first_layer, layer_count)
