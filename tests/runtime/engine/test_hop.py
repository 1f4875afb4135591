"""A hop believes nobody, bounds everything, and says when its peer is gone."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery import tls
from discovery.identity import temporary_identity
from runtime.engine import frames, hop
from runtime.engine.frames import CarriedArray, Drop, Sampling, Step, Stepped, Submit
from runtime.engine.hop import Address, Credentials, Halt, Halted, HopError, HopLost, Receiver, Sender
from runtime.engine.switchboard import Switchboard

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from discovery.identity import Identity

KEY = secrets.token_bytes(32)
STEP = Step(9, (3,), (17,), (5, 6), sample=True, carried=(CarriedArray("hidden", "float32", (1, 2, 4)),))


class Node:
    """A node of the job, with a certificate of its own."""

    def __init__(self, identity: Identity) -> None:
        self.certificate = identity.certificate_pem
        self.ours = Credentials(str(identity.certificate_path), str(identity.key_path))


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Node, Node, Node]]:
    """One that is called, one that calls it, and one that has no part in the job."""
    with temporary_identity() as called, temporary_identity() as caller, temporary_identity() as stranger:
        yield Node(called), Node(caller), Node(stranger)


@pytest.fixture
def switchboard(nodes) -> Iterator[Switchboard]:
    called, caller, _ = nodes
    board = Switchboard("127.0.0.1", KEY, called.ours)
    board.admit([called.certificate, caller.certificate])
    yield board
    board.close()


def at(listener: socket.socket, node: Node) -> Address:
    host, port = listener.getsockname()
    return Address(host, port, node.certificate)


def dial(board: Switchboard, called: Node, caller: Node, role: str = "stage 1", key: bytes = KEY) -> ssl.SSLSocket:
    return hop.dial(Address("127.0.0.1", board.port, called.certificate), key, role, caller.ours, within_seconds=5)


def pair(payload_limit_bytes: int = 1 << 20) -> tuple[Sender, Receiver]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    return Sender(near), Receiver(far, payload_limit_bytes)


def send_for_ever(sender: Sender, payload: bytes) -> None:
    while True:
        sender.send(STEP, payload)


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


def test_the_caller_that_knows_the_key_is_handed_out_under_its_role(switchboard, nodes):
    called, caller, _ = nodes
    near = dial(switchboard, called, caller)
    far = switchboard.wait_for("stage 1", caller.certificate, Halt(), within_seconds=5)
    with Sender(near) as sender, Receiver(far, 0) as receiver:
        assert near.version() == "TLSv1.3"
        sender.send(Stepped(1, (2,), (0.5,)))
        assert receiver.receive() == (Stepped(1, (2,), (0.5,)), bytearray(b""))


def test_a_large_payload_crosses_tls_and_a_lost_peer_wakes_the_reader(switchboard, nodes):
    called, caller, _ = nodes
    sender = Sender(dial(switchboard, called, caller))
    receiver = Receiver(switchboard.wait_for("stage 1", caller.certificate, Halt(), within_seconds=5), 64 << 20)
    payload = secrets.token_bytes(8 << 20)
    writing = threading.Thread(target=sender.send, args=(STEP, payload))
    writing.start()
    assert receiver.receive() == (STEP, bytearray(payload))
    writing.join()
    hanging_up = threading.Timer(0.2, receiver.hang_up)
    hanging_up.start()
    with pytest.raises(HopLost):
        receiver.receive()
    hanging_up.join()
    receiver.close()
    with sender, pytest.raises(HopLost):
        send_for_ever(sender, payload)  # the first frames still fit into the kernel's buffers


def test_a_stranger_gets_nothing_and_a_silent_one_blocks_nobody(switchboard, nodes):
    called, caller, stranger = nodes
    with socket.create_connection(("127.0.0.1", switchboard.port)):
        with pytest.raises(HopError, match="did not prove"):
            dial(switchboard, called, caller, key=secrets.token_bytes(32))
        # Without the certificate of a node of the job, the key alone opens nothing.
        with pytest.raises(HopError, match="did not prove"):
            dial(switchboard, called, stranger)
        with dial(switchboard, called, caller):
            switchboard.wait_for("stage 1", caller.certificate, Halt(), within_seconds=5).close()
    with pytest.raises(HopError, match="stage 1 did not connect"):
        switchboard.wait_for("stage 1", caller.certificate, Halt(), within_seconds=0.2)


def test_a_node_of_the_job_cannot_call_as_another(switchboard, nodes):
    called, caller, _ = nodes
    with dial(switchboard, called, called), pytest.raises(HopError, match="did not connect"):
        switchboard.wait_for("stage 1", caller.certificate, Halt(), within_seconds=0.3)


def test_whoever_waits_can_be_halted(switchboard, nodes):
    _, caller, _ = nodes
    halt = Halt()
    threading.Timer(0.1, halt.set).start()
    with pytest.raises(Halted):
        switchboard.wait_for("stage 1", caller.certificate, halt, within_seconds=30)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        free = at(listener, caller)
    with pytest.raises(Halted):
        hop.dial(free, KEY, "stage 0", caller.ours, within_seconds=30, halt=halt)


def test_calls_that_nobody_waited_for_are_closed(switchboard, nodes):
    called, caller, _ = nodes
    with dial(switchboard, called, caller) as near:
        while not switchboard._calls or switchboard._calls["stage 1"].empty():
            time.sleep(0.01)
        switchboard.forget()
        assert near.recv(1) == b""


@pytest.mark.parametrize("with_certificate", [False, True], ids=["plain", "another certificate"])
def test_a_listener_that_is_not_the_node_is_not_believed(nodes, with_certificate):
    called, caller, stranger = nodes
    with socket.create_server(("127.0.0.1", 0)) as impostor:

        def pretend() -> None:
            connection, _ = impostor.accept()
            with connection, contextlib.suppress(OSError):
                if with_certificate:
                    context = tls.hop_server_context(
                        stranger.ours.certificate_path, stranger.ours.key_path, [caller.certificate]
                    )
                    context.wrap_socket(connection, server_side=True).close()
                else:
                    connection.sendall(bytes(hop.NONCE_BYTES + hop.PROOF_BYTES))

        threading.Thread(target=pretend, daemon=True).start()
        with pytest.raises(HopError, match="not on the node"):
            hop.dial(at(impostor, called), KEY, "stage 0", caller.ours, within_seconds=5)


def test_a_listener_that_does_not_know_the_key_is_not_believed(nodes):
    """Another job's worker on the right node."""
    called, caller, _ = nodes
    other = Switchboard("127.0.0.1", secrets.token_bytes(32), called.ours)
    other.admit([caller.certificate])
    with pytest.raises(HopError, match="did not prove"):
        dial(other, called, caller)
    other.close()


def test_nobody_at_an_address_is_said_after_the_time_given(nodes):
    _, caller, _ = nodes
    with socket.create_server(("127.0.0.1", 0)) as listener:
        free = at(listener, caller)
    with pytest.raises(HopError, match=f"nobody answers at {free}"):
        hop.dial(free, KEY, "stage 0", caller.ours, within_seconds=0.2)


def test_a_firewall_that_says_nothing_is_named_in_time(nodes):
    """A full backlog does what a firewall does: the system drops what asks for a connection."""
    _, caller, _ = nodes
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        began = time.monotonic()
        with pytest.raises(HopError, match=r"answered nothing for 1 s; a firewall"):
            hop.dial(at(listener, caller), KEY, "stage 0", caller.ours, within_seconds=1)
        assert time.monotonic() - began < hop.HANDSHAKE_SECONDS
