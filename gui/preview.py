"""What the window shows of a split before it runs: the planner's verdict, and what each node would hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from runtime.planning.from_resources import plan_nodes
from runtime.planning.places import Pins
from runtime.planning.values import Plan, Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.arrangement import Arrangement
    from gui.split.model import Split
    from resources.node import NodeResources
    from runtime.models.layout import ModelLayout
    from runtime.planning.places import Link, PlanNode
    from runtime.planning.values import Goal, Mode, RankPlan, StagePlan

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
    kv_bytes: int = 0
    reserve_bytes: int = 0
    missing_bytes: int = 0
    first_layer: int = 0
    layer_count: int = 0
    group: tuple[str, ...] = ()
    """The names of the nodes that share these layers, this one's among them; empty for one that has them alone."""
    leader_id: str = ""
    """The node of the group to which the split gives them; empty if that is this one."""

    @property
    def own_count(self) -> int:
        """Layers that the split gives to this very node."""
        return 0 if self.leader_id else self.layer_count

    @property
    def needed_bytes(self) -> int:
        """Weights, cache and reserve."""
        return self.weight_bytes + self.kv_bytes + self.reserve_bytes

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
    def shown(self) -> Plan | None:
        """The plan, or what was asked for though it does not fit."""
        return self.verdict if isinstance(self.verdict, Plan) else self.verdict.draft

    @property
    def refusal(self) -> str | None:
        return self.verdict.reason if isinstance(self.verdict, Refusal) else None


def make_preview(
    layout: ModelLayout,
    nodes: Sequence[NodeResources],
    split: Split,
    mode: Mode,
    setting: Arrangement | None = None,
    links: Sequence[Link] = (),
) -> Preview:
    """Ask the planner. What does not fit comes back as a draft, so that its bytes can be shown."""
    from runtime.planning.plan import make_plan  # numpy comes with it, which a window does not need to come up

    counts = split.counts if mode == "pipeline" else None
    context = setting.context_tokens if setting else None
    known, pins = _known(layout, nodes, setting), Pins()
    if setting is not None and mode == "pipeline":
        pins = Pins(groups=_present_groups(setting, nodes))
    verdict = make_plan(layout, known, counts, mode, context_tokens=context, links=links, pins=pins)
    plan = verdict if isinstance(verdict, Plan) else verdict.draft
    if plan is None:
        return Preview(mode, verdict, tuple(Share(node, Fit.UNKNOWN) for node in nodes))
    held = {rank.node_id: (rank, stage) for stage in plan.stages for rank in stage.ranks}
    return Preview(mode, verdict, tuple(_share(node, held.get(node.node_id)) for node in nodes))


def best_plan(
    layout: ModelLayout,
    nodes: Sequence[NodeResources],
    goal: Goal,
    setting: Arrangement,
    links: Sequence[Link] = (),
) -> Plan | None:
    """The best split for a goal; if nothing fits, the one that lacks least, if any."""
    from runtime.planning.plan import make_plan  # numpy comes with it, which a window does not need to come up

    present = {node.node_id for node in nodes}
    verdict = make_plan(
        layout,
        _known(layout, nodes, setting),
        goal=goal,
        context_tokens=setting.context_tokens,
        links=links,
        pins=Pins(setting.needed & present, setting.left_out & present, _present_groups(setting, nodes)),
    )
    return verdict if isinstance(verdict, Plan) else verdict.draft


def _present_groups(setting: Arrangement, nodes: Sequence[NodeResources]) -> tuple[tuple[str, ...], ...]:
    """The groups all of whose nodes are there and take part."""
    present = {node.node_id for node in nodes} - setting.left_out
    return tuple(group for group in setting.groups if present.issuperset(group))


def _known(layout: ModelLayout, nodes: Sequence[NodeResources], setting: Arrangement | None) -> list[PlanNode]:
    known = plan_nodes(layout, nodes)
    if setting is None or not setting.reserve_cut_bytes:
        return known
    cut = setting.reserve_cut_bytes
    return [replace(node, reserve_bytes=max(node.reserved_bytes - cut, 0)) for node in known]


def _share(node: NodeResources, held: tuple[RankPlan, StagePlan] | None) -> Share:
    if held is None:
        return Share(node, Fit.LEFT_OUT)
    rank, stage = held
    if rank.room_bytes < 0:
        fit = Fit.OVER
    else:
        fit = Fit.TIGHT if rank.weight_bytes + rank.kv_bytes > TIGHT_SHARE * rank.budget_bytes else Fit.FITS
    return Share(
        node,
        fit,
        rank.weight_bytes,
        rank.kv_bytes,
        rank.reserve_bytes,
        max(-rank.room_bytes, 0),
        stage.first_layer,
        stage.layer_count,
        tuple(other.node_name for other in stage.ranks) if len(stage.ranks) > 1 else (),
        leader_id="" if rank is stage.ranks[0] else stage.ranks[0].node_id,
    )
