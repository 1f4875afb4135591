"""What a person is told of a run: every stage beside its prediction, and the split that follows in one sentence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from resources.node import NodeResources, Versions
from runtime.cluster.run_measured import run_measured
from runtime.engine.orders import StepStatistics
from runtime.planning.from_resources import plan_nodes
from runtime.planning.plan import Plan, make_plan
from tests.runtime.planning.test_plan import layout_of

if TYPE_CHECKING:
    from runtime.cluster.messages import RunMeasured

LAYOUT = layout_of((10**9,) * 12)
VERSIONS = Versions("1", "0.32", "0.32", "3.12", "macOS 26.1")
NODES = [NodeResources(name, f"Mac {name}", "M4", 16 * 10**9, 10**10, False, VERSIONS) for name in "ab"]
STEPS = 10


def told(plan: Plan, **seconds: float) -> RunMeasured:
    """Each node's seconds for a token."""
    ranks: list[Any] = [
        SimpleNamespace(
            planned=rank,
            statistics=StepStatistics(
                STEPS, STEPS, 1.0, 0, 0, chat_steps=STEPS, chat_seconds=STEPS * seconds[rank.node_id]
            )
            if rank.node_id in seconds
            else None,
        )
        for stage in plan.stages
        for rank in stage.ranks
    ]
    return run_measured(LAYOUT, plan, NODES, (), ranks)


def plan(split=None, mode="pipeline") -> Plan:
    made = make_plan(LAYOUT, plan_nodes(LAYOUT, NODES), split, mode, context_tokens=0)
    assert isinstance(made, Plan), made
    return made


def test_a_better_split_is_proposed_with_what_it_gains():
    measured = told(plan((6, 6)), a=0.24, b=0.06)
    assert [stage.measured_seconds for stage in measured.stages] == [0.24, 0.06]
    assert measured.words == (
        "By what was measured, 3 layers on Mac a, 9 layers on Mac b would give 4.8 tok/s instead of 3.3: 43% more."
    )
    assert measured.proposal is not None
    assert measured.then_tokens_per_second > measured.now_tokens_per_second


def test_where_nothing_is_gained_or_known_that_is_said():
    assert told(plan((6, 6)), a=0.1).words.startswith("Nothing was measured yet")
    best = told(plan((6, 6)), a=0.24, b=0.06).proposal
    assert best is not None
    again = told(best, a=0.12, b=0.09)
    assert (again.proposal, again.words[:27]) == (None, "Another split gains nothing")
    in_groups = told(plan(mode="tensor"), a=0.1, b=0.1)
    assert (in_groups.proposal, in_groups.stages[0].node_names) == (None, ("Mac a", "Mac b"))
    assert in_groups.words.startswith("In tensor mode")
