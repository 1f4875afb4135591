"""The speed that a person sees: steady for a steady model, and gone when it stops."""

from __future__ import annotations

import pytest

from runtime.cluster.throughput import RateMeter


@pytest.mark.parametrize("pause", [0.01, 0.19, 0.7, 2.0])
def test_a_steady_model_has_a_steady_speed(pause):
    meter = RateMeter()
    seen = []
    for token in range(20):
        meter.add(token * pause)
        if token > 2:
            seen += [meter.per_second((token + part) * pause) for part in (0.0, 0.4, 0.9)]
    assert seen == pytest.approx([1 / pause] * len(seen))


def test_eight_tokens_a_step_count_as_eight():
    meter = RateMeter()
    for step in range(10):
        meter.add(step * 0.1, 8)
    assert meter.per_second(0.9) == pytest.approx(80)


def test_it_falls_when_the_next_token_is_late_and_ends_at_zero():
    meter = RateMeter()
    for token in range(10):
        meter.add(token * 0.1)
    assert meter.per_second(0.9) > meter.per_second(1.3) > meter.per_second(1.6) > 0
    assert meter.per_second(3.0) == 0
    assert meter.per_second(60.0) == 0


def test_one_token_has_no_speed():
    meter = RateMeter()
    meter.add(0.0)
    assert meter.per_second(0.1) == 0
