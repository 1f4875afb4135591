"""A rank tells how far it is in bytes while it loads, and what it holds afterwards."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from runtime.cluster.local_ranks import LocalRanks
from runtime.engine.orders import Loaded, Progress
from tests.runtime.check.plans import planned

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.engine.orders import AnyReport
    from runtime.planning.plan import Plan

SPLIT = (5, 18, 7)


class Watched(LocalRanks):
    """Remembers what each rank reports."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        super().__init__(plan, folder)
        self.reports: defaultdict[int, list[AnyReport]] = defaultdict(list)

    def _on_report(self, number: int, report: AnyReport) -> None:
        self.reports[number].append(report)
        super()._on_report(number, report)


async def test_progress_comes_in_bytes_layer_by_layer(demo_model):
    plan = planned(demo_model, SPLIT)
    async with Watched(plan, demo_model) as ranks:
        reports = ranks.reports
    for rank, stage in enumerate(plan.stages):
        loaded = [report.loaded_bytes for report in reports[rank] if isinstance(report, Progress)]
        planned_bytes = stage.ranks[0].weight_bytes
        assert loaded == sorted(loaded)
        assert len({count for count in loaded if count}) == stage.layer_count
        assert 0 < loaded[-1] <= planned_bytes
        held = next(report.held_bytes for report in reports[rank] if isinstance(report, Loaded))
        assert held == pytest.approx(planned_bytes, rel=0.01)
