"""Three virtual nodes, each of which may be killed and replaced, and wishes that their processes go wrong."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from runtime.cli.virtual_nodes import VirtualNodes, virtual_nodes
from tests.running import Agents, runs, workers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from discovery.home import Home
    from runtime.agent.messages import AgentStarted

FORCED = Path(__file__).parent / "forced"


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """For the processes that start inside."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Fleet:
    """``folder`` gets the logs and the wishes. Sessions over :attr:`agents` start with the wishes in force."""

    def __init__(self, home: Home, folder: Path, count: int = 3) -> None:
        self.home = home
        self.wishes = folder / "wishes"
        self.wishes.mkdir(parents=True)
        self.log = folder / "log"
        self._nodes = virtual_nodes(count)
        self._running: list[VirtualNodes] = []
        self._started: list[AgentStarted] = []

    def start(self) -> None:
        self._running = [VirtualNodes([node], self.home, self.log).__enter__() for node in self._nodes]
        self._started = [running.started()[0] for running in self._running]

    def close(self) -> None:
        for running in self._running:
            running.close()

    @property
    def agents(self) -> Agents:
        return Agents(self.home, tuple(self._started))

    @property
    def names(self) -> list[str]:
        """Of the nodes, in the order of a split."""
        return [node.name for node in self._nodes]

    def agent(self, node_id: str) -> psutil.Process:
        return psutil.Process(self._started[self._index(node_id)].pid)

    def worker(self, node_id: str) -> psutil.Process:
        """The node's only worker that is not on its way out."""
        found = [child for child in self.agent(node_id).children(recursive=True) if runs(child, "worker")]
        return max(found, key=lambda process: process.create_time())

    def workers(self) -> list[psutil.Process]:
        return workers(self.agents)

    def replace(self, node_id: str) -> str:
        """Another agent in place of one that is gone; returns its node's id."""
        index = self._index(node_id)
        self._running[index].close()
        self.home.trust.remove(node_id)
        self._running[index] = VirtualNodes([self._nodes[index]], self.home, self.log).__enter__()
        (self._started[index],) = self._running[index].started()
        return self._started[index].node_id

    def mend(self) -> None:
        """Replace agents that a test that failed left dead or stopped."""
        for node_id in [one.node_id for one in self._started]:
            process = self._process(node_id)
            if process is None or process.status() in {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}:
                if process is not None:
                    process.kill()
                self.replace(node_id)

    def _process(self, node_id: str) -> psutil.Process | None:
        try:
            return self.agent(node_id)
        except psutil.NoSuchProcess:
            return None

    def wish(self, name: str, what: str) -> None:
        (self.wishes / name).write_text(what)

    def wish_for_worker(self, node_id: str, what: str) -> None:
        """Its rank's number stands last on its command line."""
        self.wish(f"rank-{self.worker(node_id).cmdline()[-1]}", what)

    def forget_wishes(self) -> None:
        for path in self.wishes.iterdir():
            path.unlink()

    def _index(self, node_id: str) -> int:
        return next(index for index, one in enumerate(self._started) if one.node_id == node_id)


def ports_of(processes: Sequence[psutil.Process]) -> set[int]:
    """TCP ports on which they listen."""
    found = set()
    for process in processes:
        with_ports = process.net_connections("tcp") if process.is_running() else []
        found |= {one.laddr.port for one in with_ports if one.status == psutil.CONN_LISTEN and one.laddr}
    return found


def listening() -> set[int]:
    """Every TCP port of this machine on which someone listens."""
    connections = psutil.net_connections("tcp")
    return {one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN and one.laddr}


def copy_of(model: Path, folder: Path) -> Path:
    """Of a model's folder, to be damaged. It has a name of its own: no node takes another copy instead."""
    return Path(shutil.copytree(model, folder / f"{model.name}-to-be-damaged"))
