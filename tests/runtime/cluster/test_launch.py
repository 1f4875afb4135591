"""Where ranks listen and dial, from a plan and the links that were chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from resources.node import NodeResources, Versions
from runtime.cluster.launch import JobFacts, RankState, connect_order, rank_states, room_tokens, used_links
from runtime.cluster.links import Link, LinkEnd
from runtime.cluster.nodes import KnownNode
from runtime.engine.orders import CacheLimits, Listening
from runtime.planning.plan import Plan, RankPlan, StagePlan

if TYPE_CHECKING:
    from collections.abc import Sequence

A, B, C = "a" * 64, "b" * 64, "c" * 64
NAMES = {A: "Studio", B: "mini", C: "Air"}
VERSIONS = Versions("1", "1", "1", "1", "1")


def node(node_id: str, host: str) -> KnownNode:
    return KnownNode(
        host, 47665, NodeResources(node_id, NAMES[node_id], "M4", 1, 1, virtual=False, versions=VERSIONS), node_id[0]
    )


def rank(node_id: str) -> RankPlan:
    return RankPlan(node_id, NAMES[node_id], 1)


def link(one: str, its: str, other: str, others: str, name: str = "Ethernet 1G") -> Link:
    return Link(name, (LinkEnd(one, "en0", its), LinkEnd(other, "en0", others)), 3e-4, 1e8)


def plan(*stages: Sequence[str]) -> Plan:
    planned = tuple(StagePlan(index, index, tuple(map(rank, ids))) for index, ids in enumerate(stages))
    return Plan("model", "tensor" if len(stages) == 1 else "pipeline", len(stages), planned)


def listening(planned: Plan, nodes: Sequence[KnownNode], *links: Link) -> list[RankState]:
    states = rank_states(JobFacts("job", bytes(32), "/model", CacheLimits()), planned, nodes, links)
    for state in states:
        state.take(Listening(5000 + state.rank, 6000 + state.rank))
    return states


def test_each_hop_takes_the_link_of_its_two_nodes():
    links = link(A, "10.1.0.1", B, "10.1.0.2", "Thunderbolt"), link(A, "10.2.0.1", C, "10.2.0.3")
    three = plan([A], [B], [C])
    states = listening(three, [node(A, "10.0.0.1"), node(B, "10.0.0.2"), node(C, "10.0.0.3")], *links)
    dialled = [str(connect_order(state, states).next_stage) for state in states]
    assert dialled == ["10.1.0.2:5001", "10.0.0.3:5002", "10.2.0.1:5000"]
    assert str(states[0].hop_address) == "10.0.0.1:5000"
    assert [(used.from_node, used.to_node, used.name, used.address) for used in used_links(three, links)] == [
        ("Studio", "mini", "Thunderbolt", "10.1.0.2"),
        ("Air", "Studio", "Ethernet 1G", "10.2.0.1"),
    ]


def test_a_rank_listens_only_where_it_is_dialled_and_wider_if_that_is_in_two_places():
    states = listening(
        plan([A], [B], [C]),
        [node(A, "10.0.0.1"), node(B, "10.0.0.2"), node(C, "10.0.0.3")],
        link(A, "10.0.0.1", B, "10.1.0.2"),
        link(A, "10.0.0.1", C, "10.0.0.3"),
    )
    assert [state.launch.host for state in states] == ["10.0.0.1", "0.0.0.0", "10.0.0.3"]


def test_without_links_every_node_is_dialled_where_the_controller_reaches_it():
    states = listening(plan([A], [B]), [node(A, "127.0.0.1"), node(B, "127.0.0.1")])
    assert {state.launch.host for state in states} == {"127.0.0.1"}
    assert str(connect_order(states[0], states).next_stage) == "127.0.0.1:5001"


def test_link_local_addresses_are_dialled_with_the_scope_of_the_dialling_end():
    ends = link(A, "fe80::1%en5", B, "fe80::2%en0")
    states = listening(plan([A], [B]), [node(A, "fe80::1%en9"), node(B, "fe80::2%en9")], ends)
    dialled = [str(connect_order(state, states).next_stage) for state in states]
    assert dialled == ["fe80::2%en0:5001", "fe80::1%en5:5000"]
    assert [state.launch.host for state in states] == ["::", "::"]


def test_the_ranks_of_a_group_dial_each_other_over_their_links():
    ends = link(A, "10.1.0.1", B, "10.1.0.2", "Thunderbolt")
    states = listening(plan([A, B]), [node(A, "10.0.0.1"), node(B, "10.1.0.2")], ends)
    first, second = (connect_order(state, states) for state in states)
    assert [str(address) for address in first.followers] == ["10.1.0.2:5001"]
    assert [str(address) for address in first.ring] == ["0.0.0.0:6000", "10.1.0.2:6001"]
    assert [str(address) for address in second.ring] == ["10.1.0.1:6000", "10.1.0.2:6001"]
    assert [state.launch.host for state in states] == ["0.0.0.0", "10.1.0.2"]


def test_one_stage_alone_listens_for_its_controller():
    (state,) = listening(plan([A]), [node(A, "10.0.0.1")])
    assert state.launch.host == "10.0.0.1"
    assert used_links(plan([A]), ()) == ()


def test_the_caches_hold_as_many_contexts_as_half_of_what_is_free_on_every_node_allows():
    stages = tuple(
        StagePlan(index, index, (RankPlan(node_id, NAMES[node_id], 50, 10, 0, budget),))
        for index, (node_id, budget) in enumerate([(A, 200), (B, 130)])
    )
    planned = Plan("model", "pipeline", 2, stages, 1000)
    assert room_tokens(planned) == 1000 * (1 + (130 - 60) // 2 // 10)
    tight = msgspec.structs.replace(planned, stages=(stages[0], msgspec.structs.replace(stages[1], ranks=(rank(B),))))
    assert room_tokens(tight) == 1000 * (1 + (200 - 60) // 2 // 10)  # a rank without caches bounds nothing
    limits = rank_states(
        JobFacts("job", bytes(32), "/model", CacheLimits(prefix_tokens=10**6)),
        planned,
        [node(A, "10.0.0.1"), node(B, "10.0.0.2")],
    )[0].launch.limits
    assert (limits.context_tokens, limits.cache_tokens, limits.prefix_tokens) == (1000, 4000, 2000)
