"""What a rank sends is on its way before the rank does anything else that holds Python's lock."""

from __future__ import annotations

import socket
import time

import pytest

from runtime.engine.frames import Drop
from runtime.engine.hop import Sender
from runtime.engine.mailbox import Inbox, Lost, Outbox

BIG_BYTES = 64 << 20
"""More than any socket buffers, so a peer that does not read holds it up."""


@pytest.fixture
def inbox():
    return Inbox(0)


@pytest.fixture
def hop(inbox):
    """An outbox, and the socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname())
        there, _ = listener.accept()
    outbox = Outbox(Sender(here), inbox, "test")
    yield outbox, there
    outbox.close()
    there.close()


def test_what_was_queued_is_with_the_system_after_the_wait(hop):
    outbox, there = hop
    outbox.put(Drop((1,)))
    outbox.put(Drop((2,)), b"payload")
    outbox.wait_sent(10.0)
    assert there.recv(1 << 16, socket.MSG_DONTWAIT).endswith(b"payload")


def test_a_peer_that_does_not_read_holds_nobody_up(hop):
    outbox, _there = hop
    outbox.put(Drop((1,)), bytes(BIG_BYTES))
    began = time.monotonic()
    outbox.wait_sent(0.05)
    assert time.monotonic() - began >= 0.05  # it gave up, and did not wait for the peer


def test_a_hop_that_is_gone_holds_nobody_up(hop, inbox):
    outbox, there = hop
    there.close()
    for _ in range(20):
        outbox.put(Drop((1,)), bytes(1 << 20))
    outbox.wait_sent(10.0)
    assert isinstance(inbox.get_nowait(), Lost)
