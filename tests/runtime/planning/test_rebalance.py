"""Measured stage times replace predicted ones, and a better split follows."""

from __future__ import annotations

import msgspec
import pytest

from runtime.models.cache_layout import LayerCache
from runtime.models.layer_figures import ModelFigures
from runtime.planning.cost import NodeSpeed
from runtime.planning.plan import Pins, Plan, PlanNode, make_plan
from runtime.planning.rebalance import Rebalancing, Run
from tests.runtime.planning.test_plan import layout_of

LAYOUT = layout_of((10**9,) * 12)
SPEED = NodeSpeed(100e9, 1e12)
NODES = [PlanNode(name, f"Mac {name}", 9 * 10**9, SPEED, 0) for name in "ab"]


def ran(split=None, goal="even", **options) -> Plan:
    plan = make_plan(LAYOUT, NODES, split, goal=goal, **options)
    assert isinstance(plan, Plan)
    return plan


def rebalancing(plan: Plan, seconds, context_tokens=0) -> Rebalancing:
    return Rebalancing(LAYOUT, NODES, plan, Run(seconds, context_tokens))


def counts(plan: Plan) -> dict[str, int]:
    return {stage.ranks[0].node_id: stage.layer_count for stage in plan.stages}


def test_predicted_stands_next_to_measured():
    plan = ran((6, 6))
    first, second = rebalancing(plan, {"a": 0.12}).stages()
    assert (first.stage.ranks[0].node_name, first.measured_seconds) == ("Mac a", 0.12)
    assert first.error == pytest.approx((plan.stages[0].decode_seconds - 0.12) / 0.12)
    assert (second.measured_seconds, second.error) == (None, None)


def test_a_run_is_compared_with_what_its_texts_had_and_not_with_a_full_context():
    figures = ModelFigures((LayerCache("full", 10**6),) * 12, 8192, 2.0, "bf16")
    layout = msgspec.structs.replace(LAYOUT, figures=figures)
    nodes = [PlanNode(name, name, 10**12, SPEED, 0) for name in "ab"]
    plan = make_plan(layout, nodes, (6, 6), context_tokens=10_000)
    assert isinstance(plan, Plan)
    short, full = (Rebalancing(layout, nodes, plan, Run({}, tokens)).stages()[0] for tokens in (100, 10_000))
    assert full.stage.decode_seconds == plan.stages[0].decode_seconds
    assert short.stage.decode_seconds == pytest.approx(6 * (1e9 + 1e8) / 100e9)


def test_a_node_that_is_slower_than_thought_gives_layers_away():
    proposal = rebalancing(ran((6, 6)), {"a": 0.24, "b": 0.06}).proposal()
    assert proposal is not None
    assert counts(proposal.plan) == {"a": 4, "b": 8}, "as many as fit the faster one"
    assert proposal.now_tokens_per_second == pytest.approx(1 / 0.3, rel=0.01)
    assert proposal.then_tokens_per_second == pytest.approx(1 / (4 * 0.04 + 8 * 0.01), rel=0.01)
    assert proposal.gain == pytest.approx(0.25, rel=0.05)
    assert {stage.source for stage in proposal.plan.stages} == {"measured"}


def test_a_split_that_is_right_gains_nothing():
    best = ran(goal="requests")
    measured = {stage.ranks[0].node_id: stage.decode_seconds for stage in best.stages}
    proposal = rebalancing(best, measured).proposal()
    assert proposal is not None
    assert proposal.gain == pytest.approx(0)


def test_many_requests_are_balanced_by_the_slowest_stage():
    proposal = rebalancing(ran(goal="requests"), {"a": 0.12, "b": 0.06}).proposal()
    assert proposal is not None
    assert counts(proposal.plan) == {"a": 4, "b": 8}


def test_groups_stay_and_in_tensor_mode_there_is_no_boundary_to_move():
    nodes = [PlanNode(name, name, 20 * 10**9, SPEED, 0) for name in "ab"]
    grouped = make_plan(LAYOUT, nodes, (12, 0), pins=Pins(groups=(("a", "b"),)))
    tensor = make_plan(LAYOUT, nodes, mode="tensor")
    assert isinstance(grouped, Plan)
    assert isinstance(tensor, Plan)
    ran_grouped, ran_tensor = (
        Rebalancing(LAYOUT, nodes, plan, Run({"a": 0.1, "b": 0.2}, 0)) for plan in (grouped, tensor)
    )
    assert [one.measured_seconds for one in (*ran_grouped.stages(), *ran_tensor.stages())] == [0.2, 0.2], "the slower"
    proposal = ran_grouped.proposal()
    assert proposal is not None
    assert [len(stage.ranks) for stage in proposal.plan.stages] == [2]
    assert ran_tensor.proposal() is None
