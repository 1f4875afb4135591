"""A hop believes nobody, bounds everything, and says when its peer is gone."""

from __future__ import annotations

import secrets
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.engine import frames, hop
from runtime.engine.frames import CarriedArray, Drop, Sampling, Step, Stepped, Submit
from runtime.engine.hop import Address, HopError, HopLost, Receiver, Sender
from runtime.engine.switchboard import Switchboard

KEY = secrets.token_bytes(32)
STEP = Step(9, (3,), (17,), (5, 6), sample=True, carried=(CarriedArray("hidden", "float32", (1, 2, 4)),))


@pytest.fixture
def switchboard():
    board = Switchboard("127.0.0.1", KEY)
    yield board
    board.close()


def address(board: Switchboard) -> Address:
    return Address("127.0.0.1", board.port)


def pair(payload_limit_bytes: int = 1 << 20) -> tuple[Sender, Receiver]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    return Sender(near), Receiver(far, payload_limit_bytes)


def test_a_frame_arrives_as_it_was_sent():
    sender, receiver = pair()
    payload = secrets.token_bytes(32)
    with sender, receiver:
        sender.send(STEP, payload)
        sender.send(Drop((3,)))
        assert receiver.receive() == (STEP, bytearray(payload))
        assert receiver.receive() == (Drop((3,)), bytearray(b""))


def test_a_large_payload_crosses_in_pieces():
    sender, receiver = pair(payload_limit_bytes=64 << 20)
    payload = secrets.token_bytes(8 << 20)
    with sender, receiver:
        writing = threading.Thread(target=sender.send, args=(STEP, payload))
        writing.start()
        assert receiver.receive() == (STEP, bytearray(payload))
        writing.join()


def test_a_payload_beyond_the_limit_is_refused_before_it_is_read():
    sender, receiver = pair(payload_limit_bytes=10)
    with sender, receiver:
        sender.send(STEP, b"x" * 11)
        with pytest.raises(HopError, match="more than this model can need"):
            receiver.receive()


def test_a_lost_frame_is_noticed():
    sender, receiver = pair()
    with sender, receiver:
        sender._number = 1
        sender.send(Drop((1,)))
        with pytest.raises(HopError, match="frame 0 was expected, but 1 came"):
            receiver.receive()


def test_a_clean_end_and_a_cut_frame_are_told_apart():
    sender, receiver = pair()
    sender.close()
    with receiver, pytest.raises(HopLost, match="closed the connection"):
        receiver.receive()
    sender, receiver = pair()
    sender._connection.sendall(b"\0\0")
    sender.close()
    with receiver, pytest.raises(HopLost, match="cut off"):
        receiver.receive()


@given(st.binary(min_size=frames.PREFIX.size, max_size=200))
def test_garbage_is_an_error_and_never_a_frame(garbage):
    sender, receiver = pair(payload_limit_bytes=100)
    with receiver:
        sender._connection.sendall(garbage)
        sender.close()
        with pytest.raises(HopError):
            receiver.receive()


@given(
    st.builds(
        Submit,
        request=st.integers(0, (1 << 63) - 1),
        prompt=st.lists(st.integers(0, (1 << 31) - 1), max_size=50).map(tuple),
        max_tokens=st.integers(1, 1 << 31),
        end_tokens=st.lists(st.integers(0, 300_000), max_size=4).map(tuple),
        sampling=st.builds(
            Sampling, temperature=st.floats(0, 10), top_p=st.floats(0.01, 1), seed=st.integers(0, (1 << 63) - 1)
        ),
    )
)
def test_every_request_survives_the_wire(submit):
    assert frames.decode(frames.encode(submit)) == submit


def test_the_caller_that_knows_the_key_is_handed_out_under_its_role(switchboard):
    with hop.dial(address(switchboard), KEY, "stage 1", within_seconds=5) as near:
        far = switchboard.wait_for("stage 1", within_seconds=5)
        with Sender(near) as sender, Receiver(far, 0) as receiver:
            sender.send(Stepped(1, (2,), (0.5,)))
            assert receiver.receive() == (Stepped(1, (2,), (0.5,)), bytearray(b""))


def test_a_stranger_gets_nothing_and_a_silent_one_blocks_nobody(switchboard):
    with socket.create_connection(("127.0.0.1", switchboard.port)), pytest.raises(HopError, match="did not prove"):
        hop.dial(address(switchboard), secrets.token_bytes(32), "stage 1", within_seconds=5)
    with hop.dial(address(switchboard), KEY, "stage 1", within_seconds=5):
        switchboard.wait_for("stage 1", within_seconds=5).close()
    with pytest.raises(HopError, match="stage 1 did not connect"):
        switchboard.wait_for("stage 1", within_seconds=0.2)


def test_a_listener_that_does_not_know_the_key_is_not_believed():
    with socket.create_server(("127.0.0.1", 0)) as impostor:

        def pretend() -> None:
            connection, _ = impostor.accept()
            with connection:
                connection.sendall(bytes(hop.NONCE_BYTES + hop.PROOF_BYTES))

        threading.Thread(target=pretend, daemon=True).start()
        with pytest.raises(HopError, match="did not prove"):
            hop.dial(Address(*impostor.getsockname()), KEY, "stage 0", within_seconds=5)


def test_nobody_at_an_address_is_said_after_the_time_given():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        free = Address(*listener.getsockname())
    with pytest.raises(HopError, match=f"nobody answers at {free}"):
        hop.dial(free, KEY, "stage 0", within_seconds=0.2)
