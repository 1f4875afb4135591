"""The samples behind the speed plot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gui.plots.series import Series, nice_ceiling


def test_what_is_older_than_five_minutes_is_forgotten_but_for_one_sample_at_the_edge():
    series = Series()
    for tenth in range(4000):
        series.add(tenth / 10, 30.0)
    ages, _ = series.points(399.9, 300.0)
    assert ages[0] == pytest.approx(-300.0, abs=0.2)
    assert len(series) == pytest.approx(3001, abs=2)


def test_a_curve_has_no_more_points_than_can_be_told_apart_and_they_slide():
    series = Series()
    for tenth in range(4000):
        series.add(tenth / 10, float(tenth % 7))
    assert series.newest is not None
    for span in (60.0, 300.0):
        (ages, values), (later_ages, later_values) = series.points(399.9, span), series.points(400.0, span)
        assert len(ages) < 250
        assert ages[0] == pytest.approx(-span, abs=1.5)
        assert (ages[-1], values[-1]) == (0.0, series.newest[1])
        assert [age - 0.1 for age in ages[-100:-1]] == pytest.approx(later_ages[-100:-1])
        assert values[-100:-1] == later_values[-100:-1]


def test_the_value_at_a_time_is_that_of_the_nearest_sample():
    series = Series()
    assert series.value_at(1.0) is None
    for second, value in ((10.0, 5.0), (20.0, 7.0)):
        series.add(second, value)
    assert (series.value_at(11.0), series.value_at(19.0), series.value_at(99.0)) == (5.0, 7.0, 7.0)
    assert series.value_at(2.0) is None


def test_an_old_peak_no_longer_counts():
    series = Series()
    series.add(0, 100)
    series.add(50, 10)
    assert series.peak(55) == 100
    assert series.peak(61) == 10
    assert series.peak(200) == 0


def test_counts_of_whole_tokens_do_not_make_the_curve_jump():
    series = Series()
    for tenth in range(100):
        series.add(tenth / 10, 5.0 + tenth % 2)
    _, values = series.points(9.9)
    assert max(values[20:]) - min(values[20:]) < 0.2


def test_nothing_is_nothing_at_once():
    series = Series()
    series.add(0.0, 30.0)
    series.add(0.1, 0.0)
    assert series.newest == (0.1, 0.0)


def test_the_last_value_holds_until_now():
    series = Series()
    series.add(10, 5)
    assert series.points(12) == ([-2, 0.0], [5, 5])


def test_time_that_runs_backwards_begins_a_new_session():
    series = Series()
    series.add(50, 5)
    series.add(1, 7)
    assert series.points(1) == ([0], [7])


def test_without_samples_there_is_nothing_to_draw():
    assert Series().points(0) == ([], [])
    assert Series().newest is None


@given(st.floats(0, 1e6))
def test_the_axis_ends_above_the_peak_at_a_round_number(peak):
    top = nice_ceiling(peak)
    assert peak < top <= max(3 * peak, 1)
    assert float(f"{top:.2g}") == top
