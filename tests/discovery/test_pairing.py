"""The exchange and the desk by themselves: who ends up with the same key, and how often one may try."""

from __future__ import annotations

import itertools

import pytest

from discovery.pairing import (
    CODE_SECONDS,
    EXCHANGE_SECONDS,
    LONGEST_LOCK_SECONDS,
    TRIES,
    Busy,
    CodeDesk,
    Guest,
    HostExchange,
    Locked,
    NoCode,
    WrongCode,
    is_code,
)

GUEST, HOST, MIDDLE = "a" * 64, "b" * 64, "e" * 64


def test_the_same_code_and_the_same_certificates_give_the_same_key():
    guest = Guest("123456", GUEST, HOST)
    host = HostExchange("123456", HOST, GUEST, guest.message)
    assert host.accepts(guest.prove(host.message, host.proof))


@pytest.mark.parametrize(
    ("code", "host_id", "guest_id"),
    [("123457", HOST, GUEST), ("123456", MIDDLE, GUEST), ("123456", HOST, MIDDLE)],
    ids=["another code", "another host", "another guest"],
)
def test_anything_else_is_noticed_by_both(code, host_id, guest_id):
    guest = Guest("123456", GUEST, HOST)
    host = HostExchange(code, host_id, guest_id, guest.message)
    with pytest.raises(WrongCode):
        guest.prove(host.message, host.proof)
    assert not host.accepts(bytes(32))
    assert not host.accepts(host.proof)  # its own proof sent back is none


@pytest.mark.parametrize("message", [b"", b"A", b"A" + bytes(32), b"A" + b"\xff" * 32, b"B" + b"\1" * 32, b"A" * 34])
def test_what_is_no_message_is_a_wrong_code(message):
    with pytest.raises(WrongCode):
        HostExchange("123456", HOST, GUEST, message)


def test_a_message_sent_back_is_a_wrong_code():
    guest = Guest("123456", GUEST, HOST)
    with pytest.raises(WrongCode):
        guest.prove(guest.message, bytes(32))


def test_codes_are_six_digits_and_differ():
    desk = CodeDesk()
    codes = {desk.show(0.0) for _ in range(50)}
    assert all(is_code(code) for code in codes)
    assert len(codes) > 40


def test_a_code_ends_by_its_age():
    desk = CodeDesk()
    code = desk.show(1000.0)
    assert desk.seconds_left(1000.0) == CODE_SECONDS
    assert desk.take_try(1000.0 + CODE_SECONDS - 1) == code
    desk.end_try()
    with pytest.raises(NoCode):
        desk.take_try(1000.0 + CODE_SECONDS)


def test_one_guest_at_a_time_for_ten_seconds():
    desk = CodeDesk()
    desk.show(0.0)
    desk.take_try(0.0)
    with pytest.raises(Busy):
        desk.take_try(EXCHANGE_SECONDS - 0.1)
    desk.take_try(EXCHANGE_SECONDS)


def test_the_last_try_may_still_succeed_and_takes_the_lock_away():
    desk = CodeDesk()
    desk.show(0.0)
    for _ in range(TRIES):
        desk.end_try()
        desk.take_try(0.0)
    assert desk.code is None
    assert desk.busy(1.0)
    desk.succeed()
    desk.show(1.0)


def test_locks_double_to_an_hour():
    desk, now = CodeDesk(), 0.0
    lengths = []
    for _ in range(9):
        desk.show(now)
        for _ in range(TRIES):
            desk.end_try()
            desk.take_try(now)
        with pytest.raises(NoCode):
            desk.take_try(now)
        with pytest.raises(Locked) as locked:
            desk.show(now)
        lengths.append(locked.value.seconds)
        now += locked.value.seconds
    assert lengths[:3] == [60, 120, 240]
    assert lengths[-1] == LONGEST_LOCK_SECONDS
    assert all(later >= earlier for earlier, later in itertools.pairwise(lengths))


def test_hiding_a_code_gives_no_tries_back():
    desk = CodeDesk()
    desk.show(0.0)
    desk.hide()
    with pytest.raises(NoCode):
        desk.take_try(0.0)
