"""Nodes that are alike and joined by fast links may be faster as one stage: then a plan for a goal says so."""

from __future__ import annotations

from itertools import combinations

import msgspec
import pytest

from runtime.planning.cost import LinkSpeed, NodeSpeed
from runtime.planning.plan import Link, Pins, Plan, PlanNode, make_plan
from tests.runtime.planning.test_plan import layout_of

GB = 10**9
FAST, SLOW = LinkSpeed(1e-5, 8e9), LinkSpeed(2e-2, 1e9)
LAYOUT = msgspec.structs.replace(layout_of((GB,) * 24), layer_divided_bytes=(GB,) * 24)


def nodes_of(budget: int = 40 * GB, /, **rates: float) -> list[PlanNode]:
    """``rates`` in GB/s, by name."""
    return [PlanNode(name, name, budget, NodeSpeed(rate * 1e9, 1e13), 0) for name, rate in rates.items()]


def links_between(nodes, speed=FAST, *, but=()) -> list[Link]:
    pairs = combinations([node.node_id for node in nodes], 2)
    return [Link(*pair, SLOW if pair in but else speed) for pair in pairs]


def planned(nodes, links, goal="chat", **options) -> Plan:
    plan = make_plan(LAYOUT, nodes, goal=goal, links=links, **options)
    assert isinstance(plan, Plan), plan
    return plan


def test_two_that_are_alike_are_offered_as_a_group_and_it_keeps_its_word():
    nodes = nodes_of(Studio=400, Pro=400, Air=100)
    plan = planned(nodes, links_between(nodes))
    assert [len(stage.ranks) for stage in plan.stages] == [1]
    assert plan.offer is not None
    assert plan.offer.groups == (("Studio", "Pro"),)
    assert plan.offer.words == "Studio + Pro as one tensor group: 32.8 tok/s instead of 16.7"
    mixed = planned(nodes, links_between(nodes), pins=Pins(groups=plan.offer.groups))
    assert mixed.predicted == plan.offer.predicted
    assert (mixed.offer, mixed.warning) == (None, None)
    assert [[rank.node_id for rank in stage.ranks] for stage in mixed.stages] == [["Studio", "Pro"]]
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_a_group_is_one_stage_among_others_where_it_does_not_hold_everything():
    nodes = nodes_of(8 * GB, a=400, b=400) + nodes_of(Large=100)
    plan = planned(nodes, links_between(nodes))
    assert plan.offer is not None
    mixed = planned(nodes, links_between(nodes), pins=Pins(groups=plan.offer.groups))
    assert sorted(len(stage.ranks) for stage in mixed.stages) == [1, 2]
    assert mixed.predicted is not None
    assert plan.predicted is not None
    assert mixed.predicted.chat_tokens_per_second > plan.predicted.chat_tokens_per_second


def test_four_that_hold_it_only_together_are_offered_as_pairs_where_four_cannot_share():
    layout = msgspec.structs.replace(LAYOUT, tensor_refusals=("", "Not three.", "Not four."))
    nodes = nodes_of(10 * GB, a=400, b=400, c=400, d=400)
    plan = make_plan(layout, nodes, goal="chat", links=links_between(nodes))
    assert isinstance(plan, Plan), plan
    assert plan.offer is not None
    assert plan.offer.groups == (("a", "b"), ("c", "d"))
    assert " as tensor groups: " in plan.offer.words


@pytest.mark.parametrize("goal", ["even", "room"])
def test_goals_that_are_not_about_speed_have_no_offer(goal):
    nodes = nodes_of(Studio=400, Pro=400)
    assert planned(nodes, links_between(nodes), goal).offer is None


def test_without_a_measured_or_a_fast_link_or_a_like_node_there_is_no_offer():
    alike, unlike = nodes_of(Studio=400, Pro=400), nodes_of(Studio=400, Air=100)
    assert planned(alike, []).offer is None
    assert planned(alike, links_between(alike, SLOW)).offer is None
    assert planned(unlike, links_between(unlike)).offer is None
    left_out = planned(alike, links_between(alike), pins=Pins(left_out=frozenset({"Pro"})))
    assert left_out.offer is None


def test_of_three_that_are_alike_the_two_with_the_quick_link_are_offered():
    layout = msgspec.structs.replace(LAYOUT, tensor_refusals=("", "Not three."))
    nodes = nodes_of(a=400, b=400, c=400)
    plan = make_plan(layout, nodes, goal="chat", links=links_between(nodes, but={("a", "b"), ("b", "c")}))
    assert isinstance(plan, Plan), plan
    assert plan.offer is not None
    assert plan.offer.groups == (("a", "c"),)


def test_a_group_that_a_person_made_over_a_slow_link_is_warned_of():
    nodes = nodes_of(Studio=400, Pro=400)
    plan = planned(nodes, links_between(nodes, SLOW), pins=Pins(groups=(("Studio", "Pro"),)))
    assert plan.warning is not None
    assert plan.warning.startswith("The group makes this slower: 1.0 tok/s, 16.7 without")
