"""How often something from the network may be acted on."""

from __future__ import annotations

from discovery.allowance import Allowances


def test_a_burst_and_then_as_many_as_time_brings():
    allowances = Allowances(3, 1.0, 10)
    assert [allowances.take("a", 0.0) for _ in range(4)] == [True, True, True, False]
    assert allowances.take("b", 0.0)
    assert [allowances.take("a", 2.0) for _ in range(3)] == [True, True, False]
    assert [allowances.take("a", 1000.0) for _ in range(4)] == [True, True, True, False]


def test_what_is_refused_costs_nothing():
    allowances = Allowances(1, 1.0, 10)
    assert allowances.take("a", 0.0)
    assert not any(allowances.take("a", moment / 10) for moment in range(10))
    assert allowances.take("a", 1.0)


def test_invented_names_take_no_more_room_than_allowed():
    allowances = Allowances(1, 1.0, 10)
    for number in range(1000):
        assert allowances.take(str(number), 0.0)
    assert len(allowances._left) == 10
