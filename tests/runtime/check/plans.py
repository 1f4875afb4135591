"""Plans over ranks of this machine, with memory enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.models.layout import read_layout
from runtime.planning.plan import Plan, PlanNode, RankPlan, StagePlan, make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runtime.planning.plan import Mode


def planned(folder: Path, split: Sequence[int] | None, rank_count: int = 0, mode: Mode = "pipeline") -> Plan:
    """The plan of a split, or of as many ranks, that is not refused."""
    count = len(split) if split else rank_count
    nodes = [PlanNode(str(index), f"rank {index}", 1 << 40) for index in range(count)]
    plan = make_plan(read_layout(folder), nodes, split, mode)
    assert isinstance(plan, Plan), plan
    return plan


def grouped(folder: Path, split: Sequence[int], ranks_in_stage: int) -> Plan:
    """Pipeline and tensor parallel together: every stage of ``split`` is shared by a group of ranks."""
    plan = planned(folder, split)
    stages = tuple(
        StagePlan(
            stage.first_layer,
            stage.last_layer,
            tuple(RankPlan(f"{index}.{rank}", f"rank {rank} of stage {index}", 0) for rank in range(ranks_in_stage)),
        )
        for index, stage in enumerate(plan.stages)
    )
    return Plan(plan.model, plan.mode, plan.layer_count, stages)
