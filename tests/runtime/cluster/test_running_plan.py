"""Which plan a session goes over to, by a person's wish or after a loss, and which it refuses."""

from __future__ import annotations

import msgspec
import pytest

from resources.node import NodeResources, Versions
from runtime.cluster.nodes import KnownNode
from runtime.cluster.running_plan import RunningPlan
from runtime.planning.from_resources import plan_nodes
from runtime.planning.plan import Plan, make_plan
from tests.runtime.planning.test_plan import layout_of

LAYOUT = layout_of((10**9,) * 12)
VERSIONS = Versions("1", "0.32", "0.32", "3.12", "macOS 26.1")
A, B, C = (
    KnownNode("127.0.0.1", 1, NodeResources(name, f"Mac {name}", "M4", 16 * 10**9, 10**10, False, VERSIONS))
    for name in "abc"
)


def plan(*nodes: KnownNode, split: tuple[int, ...]) -> Plan:
    made = make_plan(LAYOUT, plan_nodes(LAYOUT, (node.resources for node in nodes)), split, context_tokens=64)
    assert isinstance(made, Plan), made
    return made


@pytest.fixture
def running(tmp_path) -> RunningPlan:
    return RunningPlan(LAYOUT, plan(A, B, split=(6, 6)), (A, B), tmp_path)


def test_another_split_over_a_new_node_is_taken_with_the_node(running):
    then = plan(A, C, split=(5, 7))
    assert running.go_over(then, [C]) == ""
    assert running.plan is then
    assert list(running.nodes) == ["a", "b", "c"]


def test_what_cannot_run_changes_nothing(running):
    before, nodes = running.plan, running.nodes
    other_model = msgspec.structs.replace(before, model="another")
    older = msgspec.structs.replace(C.resources, versions=msgspec.structs.replace(VERSIONS, mlx="0.1"))
    assert "stop it to run another" in running.go_over(other_model, [])
    assert running.go_over(plan(A, C, split=(5, 7)), []).startswith("Mac c is not known to this session")
    assert "0.1" in running.go_over(plan(A, C, split=(5, 7)), [msgspec.structs.replace(C, resources=older)])
    assert (running.plan, running.nodes) == (before, nodes)


def test_a_lost_worker_leaves_the_plan_as_it_is(running):
    before = running.plan
    assert running.do_without(None) == ""
    assert running.plan is before


def test_a_lost_node_s_layers_go_to_those_that_are_left(running):
    running.go_over(running.plan, [C])
    assert running.do_without("b") == ""
    assert set(running.plan.node_ids) == {"a", "c"}
    assert running.plan.context_tokens == 64


def test_where_the_model_fits_on_none_that_are_left_the_reason_is_told(running):
    before = running.plan
    assert running.do_without("b").endswith(".")
    assert running.plan is before
