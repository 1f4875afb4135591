"""What the window shows of a split before it runs: the planner's verdict, and what each node would hold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from runtime.planning.from_resources import plan_nodes
from runtime.planning.plan import Plan, Refusal, make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.split.model import Split
    from resources.node import NodeResources
    from runtime.models.layout import ModelLayout
    from runtime.planning.plan import Mode, RankPlan, StagePlan

TIGHT_SHARE = 0.9
"""From this share of its budget on, a node whose weights and cache fit is called tight."""


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
    weight_bytes: int = 0
    needed_bytes: int = 0
    """Weights, cache and reserve."""
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
    """Ask the planner. What does not fit comes back as a draft, so that its bytes can be shown."""
    counts = split.counts if mode == "pipeline" else None
    verdict = make_plan(layout, plan_nodes(layout, nodes), counts, mode)
    plan = verdict if isinstance(verdict, Plan) else verdict.draft
    if plan is None:
        return Preview(mode, verdict, tuple(Share(node, Fit.UNKNOWN) for node in nodes))
    held = {rank.node_id: (rank, stage) for stage in plan.stages for rank in stage.ranks}
    return Preview(mode, verdict, tuple(_share(node, held.get(node.node_id)) for node in nodes))


def _share(node: NodeResources, held: tuple[RankPlan, StagePlan] | None) -> Share:
    if held is None:
        return Share(node, Fit.LEFT_OUT)
    rank, stage = held
    if rank.room_bytes < 0:
        fit = Fit.OVER
    else:
        fit = Fit.TIGHT if rank.weight_bytes + rank.kv_bytes > TIGHT_SHARE * rank.budget_bytes else Fit.FITS
    return Share(
        node, fit, rank.weight_bytes, rank.needed_bytes, max(-rank.room_bytes, 0), stage.first_layer, stage.layer_count
    )
