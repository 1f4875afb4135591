"""Where the parts of the split editor lie."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gui.split.geometry import CARD_GAP, HANDLE_GAP, Geometry, spread

positions = st.lists(st.floats(0, 1000), min_size=1, max_size=15).map(sorted)
sizes = st.tuples(st.integers(900, 3000), st.integers(1, 200), st.integers(1, 16))


@given(positions)
def test_spread_positions_keep_their_order_their_distance_and_their_place(wanted):
    spaced = spread(wanted, 13, 0, 1000)
    assert all(later - earlier >= 13 - 1e-6 for earlier, later in pairwise(spaced))
    assert spaced[0] >= -1e-6
    assert spaced[-1] <= 1000 + 1e-6


@given(positions)
def test_positions_that_are_far_enough_apart_stay_where_they_are(wanted):
    apart = [index * 14 + position * 0 for index, position in enumerate(wanted)]
    assert spread(apart, 13, 0, 1000) == pytest.approx(apart)


def test_two_positions_that_meet_move_apart_equally():
    assert spread([500, 500], 12, 0, 1000) == pytest.approx([494, 506])


def test_positions_that_meet_at_an_end_move_inwards():
    assert spread([0, 0, 0], 12, 0, 1000) == pytest.approx([0, 12, 24])


def test_without_room_the_distance_shrinks():
    assert spread([5, 5, 5], 12, 0, 10) == pytest.approx([0, 5, 10])


@given(sizes)
def test_cards_stay_inside_and_do_not_overlap(size):
    geometry = Geometry(*size)
    cards = geometry.cards[: geometry.node_count]
    for card in cards:
        assert card.left() >= 0
        assert card.right() <= geometry.width
        assert card.bottom() <= geometry.height
    for index, card in enumerate(cards):
        for other in cards[index + 1 :]:
            assert not card.intersects(other)


@given(sizes)
def test_a_cards_ribbon_comes_down_inside_it_and_misses_all_others(size):
    geometry = Geometry(*size)
    for index in range(geometry.node_count):
        left, right = geometry.ribbon_foot(index)
        assert geometry.cards[index].left() <= left < right <= geometry.cards[index].right()
        if geometry.rows == 2 and index % 2:
            upper = [geometry.cards[one] for one in range(0, geometry.node_count, 2)]
            assert all(right < card.left() or left > card.right() for card in upper)


@given(sizes, st.data())
def test_every_cell_leads_back_to_its_layer(size, data):
    geometry = Geometry(*size)
    layer = data.draw(st.integers(0, geometry.layer_count))
    assert geometry.layer_at(geometry.x_of(layer)) == layer


def test_outside_the_bar_the_nearest_end_counts():
    geometry = Geometry(1000, 30, 3)
    assert geometry.layer_at(-500) == 0
    assert geometry.layer_at(5000) == 30


@given(sizes, st.data())
def test_each_handle_can_be_grabbed_beside_its_neighbours(size, data):
    geometry = Geometry(*size)
    count = geometry.node_count - 1
    cuts = sorted(data.draw(st.lists(st.integers(0, geometry.layer_count), min_size=count, max_size=count)))
    grips = geometry.grips(cuts)
    reaches = [geometry.reach(grips, index) for index in range(count)]
    assert all(right - left >= HANDLE_GAP - 1e-6 for left, right in reaches)
    assert all(right <= left + 1e-6 for (_, right), (left, _) in pairwise(reaches))
    assert all(left <= grip <= right for grip, (left, right) in zip(grips, reaches, strict=True))


@given(sizes)
def test_ruler_labels_have_room(size):
    geometry = Geometry(*size)
    xs = [geometry.x_of(layer) for layer in geometry.ruler()]
    assert all(later - earlier >= 43.9 for earlier, later in pairwise(xs))


def test_few_cards_lie_in_one_row_and_many_in_two():
    assert Geometry(1024, 30, 5).rows == 1
    assert Geometry(1024, 30, 16).rows == 2
    assert Geometry(1024, 30, 16).card_width > 90
    assert Geometry(1024, 30, 3).cards[1].left() - Geometry(1024, 30, 3).cards[0].right() == pytest.approx(CARD_GAP)
