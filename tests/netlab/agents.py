"""Agents and onlookers on the hosts of a lab."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING

from tests.netlab.watched import WAIT_SECONDS, Event, Watched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.netlab.lab import Host


class Agent:
    """``pomona agent`` on a host, reachable from the network."""

    def __init__(self, host: Host, name: str | None = None, **options: object) -> None:
        self.host = host
        self.name = name or host.name
        self.started_seconds = time.monotonic()
        words = ["agent", "--owned", "--name", self.name, "--listen", "network"]
        self.process = pomona(host, *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        self._node_id = ""

    @property
    def node_id(self) -> str:
        """Known when it listens; waits for that."""
        if not self._node_id:
            assert self.process.stdout is not None
            self._node_id = json.loads(self.process.stdout.readline())["node_id"]
        return self._node_id

    def end(self) -> None:
        """Quit as a person does."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(WAIT_SECONDS)

    def kill(self) -> None:
        """As a crash."""
        self.host.kill(self.process)


class Onlooker(Watched):
    """What a window on a host shows."""

    def __init__(self, host: Host) -> None:
        super().__init__(host, "tests.netlab.onlooker")

    @property
    def now(self) -> Event:
        """Its lists as it told them last."""
        return self.events[-1]

    def lists_at(self, agent: Agent, host: str) -> float:
        """Wait until it lists an agent at this address."""

        def there(events: Sequence[Event]) -> bool:
            lists = events[-1] if events else {"usable": {}, "unpaired": {}}
            return any(lists[part].get(agent.node_id, ("", ""))[1] == host for part in ("usable", "unpaired"))

        return self.until(there)

    def stays(self, agent: Agent, for_seconds: float) -> None:
        """Fails if an agent leaves the lists within a time."""
        before = len(self.events)
        left = self.within(for_seconds, lambda events: len(events) > before and agent.node_id not in listed(events[-1]))
        assert not left, f"{agent.name} was taken for gone: {self.events[before:]}"

    def shows(self, *agents: Agent) -> float:
        """Wait until it lists them all; returns when that was."""
        ids = {agent.node_id for agent in agents}
        return self.until(lambda events: bool(events) and ids <= listed(events[-1]))

    def misses(self, *agents: Agent, after: float = 0.0) -> float:
        """Wait until it lists none of them, by what it said after a time."""
        ids = {agent.node_id for agent in agents}
        return self.until(
            lambda events: bool(events) and events[-1]["seconds"] > after and not ids & listed(events[-1])
        )

    def returns(self, *agents: Agent, after: float) -> float:
        """Wait until it lists them all again."""
        ids = {agent.node_id for agent in agents}
        return self.until(lambda events: bool(events) and events[-1]["seconds"] > after and ids <= listed(events[-1]))


def listed(event: Event) -> set[str]:
    """The ids of all nodes that an onlooker lists, paired or not."""
    return {*event["usable"], *event["unpaired"]}


def pomona(host: Host, *words: str, **options: object) -> subprocess.Popen[bytes]:
    """A command of Pomona on a host."""
    return host.python("-m", "pomona", *words, **options)


def said(host: Host, *words: str) -> str:
    """What a command prints; it must succeed."""
    process = pomona(host, *words, stdout=subprocess.PIPE)
    output, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0, f"pomona {' '.join(words)} on {host.name} ended with {process.returncode}"
    return output.decode()


def pair(controller: Host, agent: Agent) -> None:
    """Pair two hosts as two persons do: a code on one, typed on the other."""
    assert agent.node_id, "it listens"
    code = said(agent.host, "agent", "code").strip()
    said(controller, "pair", agent.name, "--code", code)
