"""The split as a value: whatever is done to it, every layer keeps exactly one node."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gui.split.model import Split, even

splits = st.lists(st.integers(0, 40), min_size=1, max_size=16).map(lambda counts: Split(tuple(counts)))
several = st.lists(st.integers(0, 40), min_size=2, max_size=16).map(lambda counts: Split(tuple(counts)))


@given(several, st.data())
def test_moving_a_boundary_changes_its_two_nodes_only(split, data):
    boundary = data.draw(st.integers(0, len(split.counts) - 2))
    cut = data.draw(st.integers(-50, 700))
    moved = split.moved(boundary, cut)
    assert moved.layer_count == split.layer_count
    assert moved.counts[:boundary] == split.counts[:boundary]
    assert moved.counts[boundary + 2 :] == split.counts[boundary + 2 :]
    low, high = split.limits(boundary)
    assert moved.cuts[boundary] == min(max(cut, low), high)


@given(several, st.data())
def test_a_move_and_its_reverse_cancel_out(split, data):
    boundary = data.draw(st.integers(0, len(split.counts) - 2))
    cut = data.draw(st.integers(*split.limits(boundary)))
    assert split.moved(boundary, cut).moved(boundary, split.cuts[boundary]) == split


@given(splits)
def test_cuts_are_in_order_and_spans_follow_each_other(split):
    assert list(split.cuts) == sorted(split.cuts)
    spans = split.spans
    assert spans[0][0] == 0
    assert spans[-1][1] == split.layer_count
    assert all(end == first for (_, end), (first, _) in pairwise(spans))


@given(several, st.data(), st.lists(st.integers(0, 2**40), min_size=16, max_size=16))
def test_balancing_shares_two_nodes_layers_by_weight(split, data, weights):
    boundary = data.draw(st.integers(0, len(split.counts) - 2))
    balanced = split.balanced(boundary, weights)
    assert balanced.layer_count == split.layer_count
    together = split.counts[boundary] + split.counts[boundary + 1]
    total = weights[boundary] + weights[boundary + 1]
    share = weights[boundary] / total if total else 0.5
    assert abs(balanced.counts[boundary] - together * share) <= 0.5


def test_balancing_equal_nodes_halves_their_layers():
    assert Split((3, 17, 10)).balanced(0, (8, 8, 1)).counts == (10, 10, 10)


@given(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1), st.data())
def test_no_layer_is_lost_when_nodes_come_and_go(old, data):
    split = Split(tuple(data.draw(st.lists(st.integers(0, 20), min_size=len(old), max_size=len(old)))))
    new = data.draw(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1))
    carried = split.carried(old, new)
    assert len(carried.counts) == len(new)
    assert carried.layer_count == split.layer_count


def test_the_layers_of_a_node_that_left_go_to_the_one_before_it():
    assert Split((5, 18, 7)).carried("abc", "ac").counts == (23, 7)
    assert Split((5, 18, 7)).carried("abc", "bc").counts == (23, 7)


def test_a_newcomer_gets_no_layer_and_the_others_keep_theirs():
    assert Split((5, 25)).carried("ac", "abc").counts == (5, 0, 25)


def test_when_nobody_stays_the_split_is_even():
    assert Split((5, 25)).carried("ab", "xyz").counts == (10, 10, 10)


@given(st.integers(1, 200), st.integers(1, 16))
def test_an_even_split_differs_by_one_layer_at_most(layers, nodes):
    split = even(layers, nodes)
    assert split.layer_count == layers
    assert max(split.counts) - min(split.counts) <= 1


def test_without_nodes_there_is_nothing_to_split():
    assert even(30, 0) == Split(())
    assert Split(()).cuts == ()


def test_a_negative_count_is_refused():
    with pytest.raises(ValueError, match="fewer than no layers"):
        Split((5, -1))
