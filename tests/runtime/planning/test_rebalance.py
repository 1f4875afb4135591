"""Measured stage times replace predicted ones, and a better split follows."""

from __future__ import annotations

import pytest

from runtime.planning.cost import NodeSpeed
from runtime.planning.plan import Plan, PlanNode, make_plan
from runtime.planning.rebalance import compare, rebalance
from tests.runtime.planning.test_plan import layout_of

LAYOUT = layout_of((10**9,) * 12)
SPEED = NodeSpeed(100e9, 1e12)
NODES = [PlanNode(name, f"Mac {name}", 9 * 10**9, SPEED, 0) for name in "ab"]


def ran(split, goal="even") -> Plan:
    plan = make_plan(LAYOUT, NODES, split, goal=goal)
    assert isinstance(plan, Plan)
    return plan


def test_predicted_stands_next_to_measured():
    plan = ran((6, 6))
    first, second = compare(plan, {"a": 0.12})
    assert (first.node_names, first.measured_seconds) == (("Mac a",), 0.12)
    assert first.error == pytest.approx((plan.stages[0].decode_seconds - 0.12) / 0.12)
    assert (second.measured_seconds, second.error) == (None, None)


def test_a_node_that_is_slower_than_thought_gives_layers_away():
    plan = ran((6, 6))
    proposal = rebalance(LAYOUT, NODES, plan, {"a": 0.24, "b": 0.06})
    assert proposal is not None
    counts = {stage.ranks[0].node_id: stage.layer_count for stage in proposal.plan.stages}
    assert counts == {"a": 4, "b": 8}, "as many as fit the faster one"
    assert proposal.now_tokens_per_second == pytest.approx(1 / 0.3, rel=0.01)
    assert proposal.then_tokens_per_second == pytest.approx(1 / (4 * 0.04 + 8 * 0.01), rel=0.01)
    assert proposal.gain == pytest.approx(0.25, rel=0.05)
    assert {stage.source for stage in proposal.plan.stages} == {"measured"}


def test_a_split_that_is_right_gains_nothing():
    best = make_plan(LAYOUT, NODES, goal="requests")
    assert isinstance(best, Plan)
    measured = {stage.ranks[0].node_id: stage.decode_seconds for stage in best.stages}
    proposal = rebalance(LAYOUT, NODES, best, measured)
    assert proposal is not None
    assert proposal.gain == pytest.approx(0)


def test_many_requests_are_balanced_by_the_slowest_stage():
    plan = make_plan(LAYOUT, NODES, goal="requests")
    assert isinstance(plan, Plan)
    proposal = rebalance(LAYOUT, NODES, plan, {"a": 0.12, "b": 0.06})
    assert proposal is not None
    assert {stage.ranks[0].node_id: stage.layer_count for stage in proposal.plan.stages} == {"a": 4, "b": 8}
