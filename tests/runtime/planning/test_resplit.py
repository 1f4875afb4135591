"""What going over to another split takes."""

import pytest

from gui import samples
from runtime.planning.resplit import USUAL_LOAD_BYTES_PER_SECOND, move_between, nodes_of_session, same_split

NODES = [known.resources for known in samples.virtual_nodes()]
MODEL = samples.SMALL_MODEL
LAYER = MODEL.layer_bytes[0]


def plan(*counts):
    return samples.plan_over(MODEL, NODES, counts)


def loads(before, after):
    return [(load.node_name, load.layer_count, load.byte_count) for load in move_between(MODEL, before, after).loads]


def test_only_layers_that_a_node_lacks_are_loaded():
    assert loads(plan(5, 18, 7), plan(7, 16, 7)) == [("Virtual A", 2, 2 * LAYER)]
    assert loads(plan(5, 18, 7), plan(7, 18, 5)) == [("Virtual A", 2, 2 * LAYER), ("Virtual B", 2, 2 * LAYER)]
    assert loads(plan(5, 18, 7), plan(5, 18, 7)) == []


def test_who_becomes_first_or_last_loads_embedding_or_head_too():
    ((name, count, size),) = loads(plan(0, 30, 0), plan(0, 25, 5))
    assert (name, count) == ("Virtual C", 5)
    assert size == 5 * LAYER + MODEL.head_bytes + MODEL.embedding_bytes  # tied: the head is the embedding


def test_nodes_load_side_by_side_at_the_rate_that_was_measured():
    quick = move_between(MODEL, plan(5, 18, 7), plan(9, 10, 11))
    slow = move_between(MODEL, plan(5, 18, 7), plan(9, 10, 11), 10e6)
    size = max(load.byte_count for load in quick.loads)
    assert slow.seconds - quick.seconds == pytest.approx(size / 10e6 - size / USUAL_LOAD_BYTES_PER_SECOND)


def test_plans_are_told_apart_by_who_holds_what():
    assert same_split(plan(5, 18, 7), plan(5, 18, 7))
    assert not same_split(plan(5, 18, 7), plan(7, 18, 5))


def test_what_the_session_holds_is_room_for_another_split_of_it():
    one, other, third = nodes_of_session(NODES, {"virtual-b": 5})
    assert (one, third) == (NODES[0], NODES[2])
    assert other.memory_available_bytes == min(NODES[1].memory_available_bytes + 5, NODES[1].memory_total_bytes)
