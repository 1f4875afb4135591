"""Silence is counted only while the listener listens."""

from __future__ import annotations

from runtime.signs import Signs


def looked(signs: Signs[str], begin: float, seconds: float, step: float = 0.1) -> float:
    """Look in steps; returns the time afterwards."""
    for _ in range(round(seconds / step)):
        begin += step
        signs.look(begin)
    return begin


def test_who_makes_no_sign_is_silent_and_who_does_is_not():
    signs: Signs[str] = Signs()
    signs.look(100.0)
    signs.hear("studio")
    signs.hear("mini")
    now = looked(signs, 100.0, 3.9)
    assert signs.silent(4.0) == []
    signs.hear("mini")
    looked(signs, now, 0.3)
    assert signs.silent(4.0) == ["studio"]
    assert 4.1 < signs.silent_seconds("studio") < 4.3


def test_a_listener_that_slept_blames_nobody():
    signs: Signs[str] = Signs()
    signs.look(0.0)
    signs.hear("studio")
    now = looked(signs, 0.0, 2.0)
    signs.look(now + 3600.0)
    assert signs.silent(4.0) == []
    looked(signs, now + 3600.0, 2.0)
    assert signs.silent(4.0) == ["studio"]


def test_nothing_is_expected_of_those_that_were_forgotten_or_never_heard():
    signs: Signs[str] = Signs()
    signs.look(0.0)
    signs.hear("studio")
    signs.forget("studio")
    signs.forget("studio")
    looked(signs, 0.0, 60.0)
    assert signs.silent(1.0) == []
    assert signs.silent_seconds("mini") == 0.0
