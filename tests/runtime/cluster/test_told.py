"""How a worker ended, in words."""

from __future__ import annotations

import signal

import pytest

from runtime.cluster.told import end_of_worker


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
