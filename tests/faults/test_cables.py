"""A cable is pulled while a model answers, for good or for eight seconds, at every place; a firewall is in the way."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil
import pytest

from discovery.address import DEFAULT_PORT
from tests.faults.harm import PLACES
from tests.netlab.agents import Agent, pair
from tests.netlab.lab import Lab, missing
from tests.netlab.watched import Watched
from tests.running import runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.netlab.watched import Event

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.matrix,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

NAMES = ("studio", "mini", "air")
WAIT_SECONDS = 300.0
LEASE_SECONDS = 60
"""A node that is cut off ends its workers when nothing has come from its controller for some seconds."""


@pytest.fixture(scope="module")
def network() -> Iterator[tuple[Lab, list[Agent]]]:
    """A controller's host, and three with agents that trust it."""
    with Lab("desk", *NAMES) as lab:
        agents = [Agent(lab[name]) for name in NAMES]
        for agent in agents:
            pair(lab["desk"], agent)
        yield lab, agents


def workers_of(agent: Agent) -> list[psutil.Process]:
    children = psutil.Process(agent.process.pid).children(recursive=True)
    return [child for child in children if runs(child, "worker")]


def until(front_end: Watched, enough: Callable[[list[Event]], bool]) -> float:
    """When it had said enough, by the clock that all processes here share."""
    found = front_end.within(WAIT_SECONDS, enough)
    assert found, front_end.events[-3:]
    return float(found["seconds"])


def tokens_of(events: list[Event], request: str) -> list[int]:
    texts = [event for event in events if event["event"] == "text" and event["request"] == request]
    return [token for event in texts for token in event["tokens"]]


@pytest.mark.parametrize("place", PLACES["pipeline"])
@pytest.mark.parametrize("seconds", [None, 8.0], ids=["for good", "for 8 s"])
@pytest.mark.parametrize("keep", ["keep", "end"])
def test_a_cable(network, demo_model, note, keep, seconds, place):
    lab, agents = network
    cut = agents[PLACES["pipeline"][place]]
    ids = [agent.node_id for agent in agents]
    front_end = Watched(lab["desk"], "tests.faults.lab_session", str(demo_model), "10,10,10", keep, *ids)
    workers: list[psutil.Process] = []
    try:
        until(front_end, lambda events: len(tokens_of(events, "second")) > 2)
        workers = [worker for agent in agents for worker in workers_of(agent)]
        began = time.monotonic()
        cut.host.pull()
        if seconds is not None:
            time.sleep(seconds)
            cut.host.push()
        noticed = until(front_end, lambda events: bool(events) and events[-1]["event"] == "trouble") - began
        how = "for good" if seconds is None else f"for {seconds:.0f} s"
        over = until(front_end, lambda events: bool(events) and events[-1]["event"] == "closed")
        trouble = next(event for event in front_end.events if event["event"] == "trouble")
        outcome = "goes on" if keep == "keep" else "ends"
        note(f"cable cut {how}", f"pipeline {place}", outcome, noticed, f"{trouble['reason']} ({over - began:.0f} s)")
        assert cut.name in trouble["reason"]
        undisturbed, harmed = tokens_of(front_end.events, "first"), tokens_of(front_end.events, "second")
        assert harmed == undisturbed[: len(harmed)]
        assert (harmed == undisturbed) == (keep == "keep")
    finally:
        cut.host.push()
        front_end.process.wait(60)
    # Those on the node that was cut off end by themselves: before it is back, or when it is.
    _gone, alive = psutil.wait_procs(workers, timeout=LEASE_SECONDS)
    assert not alive


def test_a_firewall_between_two_nodes(network, demo_model, note):
    """It lets the agent's port through and drops what asks for the worker's: the start is over in a few seconds."""
    lab, agents = network
    caller, behind = agents[0], agents[1]
    ids = [agent.node_id for agent in agents]
    front_end = Watched(lab["desk"], "tests.faults.lab_session", str(demo_model), "10,10,10", "end", *ids)
    try:
        until(front_end, lambda events: bool(events) and events[0]["event"] == "progress")  # links were measured
        behind.host.wall(caller.host, DEFAULT_PORT)
        until(front_end, lambda events: bool(events) and events[-1]["event"] == "closed")
        failed = next(event for event in front_end.events if event["event"] == "trouble")
        began = next(event for event in front_end.events if event.get("phase") == "connecting")["seconds"]
        note("firewall", "pipeline first", "ends", failed["seconds"] - began, failed["reason"])
        assert caller.name in failed["reason"]
        assert behind.host.address() in failed["reason"]
        assert "firewall" in failed["reason"]
    finally:
        front_end.process.wait(60)
        behind.host.unwall()
    _gone, alive = psutil.wait_procs(
        [worker for agent in agents for worker in workers_of(agent)], timeout=LEASE_SECONDS
    )
    assert not alive
