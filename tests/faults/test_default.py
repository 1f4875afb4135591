"""Two faults in one session, for every run of the tests; `make faults` has the others."""

from __future__ import annotations

import time

import pytest

from runtime.cluster.messages import Ready, Recovering
from tests.faults.harm import HARMS
from tests.faults.seen import answer
from tests.running import session

pytestmark = pytest.mark.timeout(900)


async def test_a_session_outlives_a_stopped_worker_and_an_exception(fleet, demo_model, note):
    async with session(fleet.agents, demo_model, (10, 10, 10), keep_running=True) as running:
        undisturbed = (await answer(running)).tokens

        # While nobody asks, too.
        victim = running.ready.ranks[1]
        fleet.worker(victim.node_id).suspend()
        began = time.monotonic()
        trouble = await running.next_of(Recovering)
        note("SIGSTOP", "idle middle", "goes on", time.monotonic() - began, trouble.reason)
        assert victim.node_name in trouble.reason
        running.ready = await running.next_of(Ready)

        harm, victim = HARMS["exception in decode"], running.ready.ranks[2]
        seen = await answer(running, lambda: harm.do(fleet, victim.node_id), request_id="exception")
        note("exception in decode", "pipeline last", "goes on", seen.noticed_seconds, seen.reasons[0])
        assert victim.node_name in seen.reasons[0]
        assert harm.word in seen.reasons[0]
        assert seen.tokens == undisturbed
