"""The best split is the best there is: compared with every other split of small models."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.planning.advice import NoFit
from runtime.planning.cost import REQUESTS_PER_STEP, LayerCost, LinkSpeed, ModelCost, NodeSpeed
from runtime.planning.evaluation import evaluate
from runtime.planning.optimum import Optimum, best_split, given_split
from runtime.planning.problem import CostedNode, SplitProblem, uniform_links
from tests.runtime.planning.brute_force import all_splits, problems

if TYPE_CHECKING:
    from runtime.planning.values import Change

GB = 10**9
KEYS = {
    "chat": lambda chat, slowest, nodes, room: (chat, nodes, -room),
    "requests": lambda chat, slowest, nodes, room: (slowest, nodes, -room, chat),
    "room": lambda chat, slowest, nodes, room: (-room, nodes, chat),
}
"""What is best for each goal, and how ties end."""


def problem_of(
    budgets, layer_bytes, *, embedding=0, head=0, bandwidths=None, rtt=1e-4, cuts=(), context=0, reserve=0, kv=0
) -> SplitProblem:
    layers = tuple(LayerCost(count, count, kv) for count in layer_bytes)
    nodes = tuple(
        CostedNode(f"Mac {index}", budget, reserve, NodeSpeed((bandwidths or {}).get(index, 100 * GB), 1e12))
        for index, budget in enumerate(budgets)
    )
    model = ModelCost("model", layers, embedding, head, False, 8192, frozenset(cuts))
    return SplitProblem(model, nodes, uniform_links(len(nodes), LinkSpeed(rtt, 10**9)), context)


def best(*arguments, goal="room", **options) -> Optimum:
    found = best_split(problem_of(*arguments, **options), goal)
    assert isinstance(found, Optimum), found
    assert not found.split.short
    return found


def figures(split) -> tuple[int, int, int, int]:
    return (
        round(1e12 / split.predicted.chat_tokens_per_second),
        round(1e12 * REQUESTS_PER_STEP / split.predicted.requests_tokens_per_second),
        len(split.stages),
        min(stage.memory.room_bytes for stage in split.stages),
    )


def equals_brute_force(problem, goal, needed=frozenset()) -> None:
    every = [split for split in all_splits(problem) if needed <= set(split[4])]
    fitting = [split[:4] for split in every if split[3] >= 0]
    if not every:
        with pytest.raises(ValueError, match="cannot share"):
            best_split(problem, goal, needed)
        return
    found = best_split(problem, goal, needed)
    if isinstance(found, NoFit):
        assert not fitting, f"refused, but {fitting[0]} fits: {found.reason}"
        assert found.missing_bytes == -max(split[3] for split in every)
        return
    used = {stage.node for stage in found.split.stages}
    assert needed <= used
    assert not found.split.short
    assert not problem.model.forbidden_cuts & {stage.first_layer for stage in found.split.stages}
    assert KEYS[goal](*figures(found.split)) == min(KEYS[goal](*split) for split in fitting)
    assert {unused.node for unused in found.unused} == set(range(len(problem.nodes))) - used


@pytest.mark.parametrize("goal", KEYS)
@settings(max_examples=60, deadline=None)
@given(problem=problems(max_nodes=4, max_layers=9))
def test_no_split_is_better(problem, goal):
    equals_brute_force(problem, goal)


@pytest.mark.parametrize("goal", KEYS)
@settings(max_examples=15, deadline=None)
@given(problem=problems(max_nodes=3, max_layers=40))
def test_no_split_of_forty_layers_is_better(problem, goal):
    equals_brute_force(problem, goal)


@pytest.mark.parametrize("goal", KEYS)
@settings(max_examples=15, deadline=None)
@given(problem=problems(max_nodes=5, max_layers=8))
def test_no_split_over_five_nodes_is_better(problem, goal):
    equals_brute_force(problem, goal)


@pytest.mark.parametrize("goal", KEYS)
@settings(max_examples=30, deadline=None)
@given(problem=problems(max_nodes=4, max_layers=8), data=st.data())
def test_no_split_in_which_some_nodes_have_to_be_is_better(problem, goal, data):
    needed = data.draw(st.sets(st.integers(0, len(problem.nodes) - 1), min_size=1))
    equals_brute_force(problem, goal, frozenset(needed))


@pytest.mark.matrix
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("goal", KEYS)
@pytest.mark.parametrize(("most_nodes", "most_layers"), [(3, 40), (4, 14), (5, 9)])
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_no_split_of_thousands_is_better(goal, most_nodes, most_layers, data):
    problem = data.draw(problems(max_nodes=most_nodes, max_layers=most_layers))
    needed = data.draw(st.sets(st.integers(0, len(problem.nodes) - 1)) if data.draw(st.booleans()) else st.just(set()))
    equals_brute_force(problem, goal, frozenset(needed))


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_nodes=3, max_layers=8), data=st.data())
def test_figures_of_a_split_are_those_of_brute_force(problem, data):
    chat, slowest, nodes, room, order, ends = data.draw(st.sampled_from(list(all_splits(problem))))
    split = evaluate(problem, tuple(zip(order, ends, strict=True)))
    assert figures(split) == (chat, slowest, nodes, room)


@settings(max_examples=60, deadline=None)
@given(problem=problems(max_nodes=3, max_layers=8), data=st.data())
def test_every_change_that_a_refusal_offers_helps(problem, data):
    first = data.draw(st.integers(1, len(problem.model.layers) - 1))
    counts = (first, len(problem.model.layers) - first)
    _, refusal = given_split(problem, counts)
    for change in refusal.changes if refusal else ():
        if change.kind in {"goal", "node"}:
            assert isinstance(best_split(changed_by(problem, change), "room"), Optimum)
        else:
            assert given_split(changed_by(problem, change), change.counts[:2] or counts)[1] is None
    found = best_split(problem, "room")
    for change in found.changes if isinstance(found, NoFit) else ():
        assert isinstance(best_split(changed_by(problem, change), "room"), Optimum)


def changed_by(problem: SplitProblem, change: Change) -> SplitProblem:
    if change.kind == "context":
        return replace(problem, context_tokens=change.amount)
    if change.kind == "reserve":
        lower = [max(node.reserve_bytes - change.amount, 0) for node in problem.nodes]
        nodes = tuple(replace(node, reserve_bytes=reserve) for node, reserve in zip(problem.nodes, lower, strict=True))
        return replace(problem, nodes=nodes)
    if change.kind == "node":
        nodes = (*problem.nodes, CostedNode("more", change.amount, 0, problem.nodes[0].speed))
        return replace(problem, nodes=nodes, links=uniform_links(len(nodes), problem.links[0][0]))
    return problem


@pytest.mark.parametrize("goal", KEYS)
def test_a_small_node_never_gets_the_layer_that_rounding_would_give_it(goal):
    found = best([128 * GB, 128 * GB, 256 * GB, 24 * GB], [6 * GB] * 88, goal=goal)
    assert {stage.node: stage.layer_count for stage in found.split.stages} == {0: 21, 1: 21, 2: 42, 3: 4}


@pytest.mark.parametrize(
    ("layers", "nodes", "counts"), [(10, 3, [3, 3, 4]), (61, 2, [30, 31]), (94, 4, [23, 23, 24, 24])]
)
@pytest.mark.parametrize("goal", ["requests", "room", "even"])
def test_layers_that_do_not_divide(layers, nodes, counts, goal):
    found = best([100 * GB] * nodes, [GB] * layers, goal=goal)
    assert max(found.split.layer_counts) == counts[-1]
    assert goal != "even" or sorted(found.split.layer_counts) == counts


def test_two_layers_on_one_mac_and_the_rest_on_the_other():
    found = best([2 * GB, 100 * GB], [GB] * 61, goal="chat", bandwidths={0: 800 * GB}, rtt=0.0)
    assert sorted(found.split.layer_counts) == [2, 59]


def test_a_fixed_embedding_that_fits_one_node_only_decides_the_order():
    found = best([8 * GB, 20 * GB], [GB] * 15, embedding=9 * GB, goal="chat")
    assert found.split.node_names == ("Mac 1", "Mac 0")
    assert found.split.stages[0].memory.room_bytes >= 0


@pytest.mark.parametrize("goal", ["chat", "requests", "room"])
def test_a_node_with_no_room_is_left_out_with_the_reason(goal):
    found = best([50 * 2**30, 0, 50 * 2**30], [2**30] * 80, goal=goal)
    assert [unused.reason for unused in found.unused] == ["Mac 1 not used: it lacks 1.0 GB for the smallest part"]


def test_a_node_that_only_slows_things_down_is_left_out_and_the_plan_says_so():
    found = best([100 * GB, 10 * GB], [GB] * 10, goal="chat", bandwidths={1: 10 * GB}, rtt=0.02)
    assert [unused.reason for unused in found.unused] == ["Mac 1 not used: 10.0 tok/s without it, 4.8 with it"]


def test_a_ring_over_the_fast_links_is_found():
    fast, slow = LinkSpeed(1e-5, 10**9), LinkSpeed(1e-2, 10**9)
    ring = [0, 2, 1, 3]
    near = {frozenset((ring[i], ring[(i + 1) % 4])) for i in range(4)}
    problem = problem_of([3 * GB] * 4, [GB] * 12)
    links = tuple(tuple(fast if frozenset((a, b)) in near else slow for b in range(4)) for a in range(4))
    found = best_split(SplitProblem(problem.model, problem.nodes, links, 0), "chat")
    assert isinstance(found, Optimum)
    order = [stage.node for stage in found.split.stages]
    assert all(frozenset((order[i], order[(i + 1) % 4])) in near for i in range(4))


def test_a_refusal_names_the_node_the_bytes_and_what_helps():
    problem = problem_of([4 * 2**30, 4 * 2**30], [2**30] * 8, context=8192, kv=2**14, reserve=2**29)
    refusal = best_split(problem, "chat")
    assert isinstance(refusal, NoFit)
    assert refusal.missing_bytes == 2**30
    assert refusal.reason == "Mac 0 lacks 1.0 GB for its part of model; add a node with 2.3 GB to spare."


def test_a_boundary_that_fits_is_offered_first():
    problem = problem_of([4 * 2**30, 9 * 2**30], [2**30] * 12)
    split, refusal = given_split(problem, (6, 6))
    assert refusal is not None
    assert split.layer_counts == (6, 6)
    assert refusal.reason == "Mac 0 lacks 2.0 GB for its part of model; move 2 layers from Mac 0 to Mac 1."
    assert given_split(problem, (4, 8))[1] is None


def test_a_shorter_context_and_a_smaller_reserve_are_offered_where_they_are_enough():
    problem = problem_of([2**30], [2**27] * 6, context=16384, kv=2**11, reserve=2**28)
    refusal = best_split(problem, "chat")
    assert isinstance(refusal, NoFit)
    assert [change.kind for change in refusal.changes] == ["reserve", "node"]
    short = problem_of([2**30], [2**27] * 6, context=16384, kv=2**12, reserve=2**27)
    refusal = best_split(short, "chat")
    assert isinstance(refusal, NoFit)
    assert refusal.changes[0].words == "shorten the context to 5376 tokens"


@pytest.mark.parametrize("goal", ["chat", "requests", "room"])
def test_more_nodes_than_are_searched_exactly_still_find_a_split_that_fits(goal):
    found = best([10 * GB] * 11, [GB] * 105, goal=goal, bandwidths={5: 50 * GB})
    assert len(found.split.stages) == 11
    found = best([60 * GB] * 11, [GB] * 105, goal=goal, bandwidths={5: 200 * GB, 9: 200 * GB}, rtt=0.01)
    if goal == "chat":
        assert sorted(stage.node for stage in found.split.stages) == [5, 9]
