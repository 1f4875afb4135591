"""What front ends are told of a rank, and how a worker ended, in words."""

from __future__ import annotations

import signal

import msgspec
import pytest

from runtime.cluster.launch import JobFacts, RankState, rank_states
from runtime.cluster.told import end_of_worker, progress
from runtime.engine.orders import CacheLimits, Loaded, Progress
from tests.runtime.cluster.test_launch import A, node, plan


@pytest.mark.parametrize(
    ("status", "phase", "words"),
    [
        (-signal.SIGKILL, "ready", "SIGKILL, as the system does when memory runs out"),
        (-signal.SIGSEGV, "ready", "crashed in native code (SIGSEGV)"),
        (-signal.SIGTERM, "loading", "was ended by SIGTERM"),
        (-250, "ready", "was ended by signal 250"),
        (1, "loading", "ended unexpectedly (exit status 1) while loading"),
        (1, "connecting", "could not connect to the others of its tensor group"),
    ],
)
def test_the_cause_is_named(status, phase, words):
    assert words in end_of_worker(status, phase)


@pytest.fixture
def rank() -> RankState:
    """One that has 3,000 bytes to load."""
    facts = JobFacts("job", b"key", "/model", CacheLimits())
    (state,) = rank_states(facts, plan([A]), [node(A, "127.0.0.1")])
    state.planned = msgspec.structs.replace(state.planned, weight_bytes=3000)
    return state


def told(rank, seconds, report):
    """What is published when a worker reports at this time."""
    rank.last_sign_seconds = seconds
    assert rank.take(report)
    event = progress(rank)
    return event.phase, event.bytes_per_second, event.seconds_left


def test_how_fast_a_rank_loads_is_told_once_it_can_be(rank):
    assert told(rank, 10.0, Progress("connecting", 0)) == ("connecting", 0.0, None)
    assert told(rank, 20.0, Progress("loading", 0)) == ("loading", 0.0, None)
    assert told(rank, 20.5, Progress("loading", 400)) == ("loading", 0.0, None)  # so soon that it says nothing
    assert told(rank, 22.0, Progress("loading", 1000)) == ("loading", 500.0, 4.0)
    assert told(rank, 24.0, Progress("loading", 3000)) == ("loading", 750.0, 0.0)
    assert told(rank, 25.0, Progress("warming up", 3000)) == ("warming up", 0.0, None)
    assert told(rank, 26.0, Loaded(3100, 3000)) == ("ready", 0.0, None)


def test_bytes_that_were_there_before_it_loads_do_not_make_it_fast(rank):
    told(rank, 20.0, Progress("loading", 2000))
    assert told(rank, 22.0, Progress("loading", 2500)) == ("loading", 250.0, 2.0)
