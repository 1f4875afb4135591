"""Several nodes on this machine: real agents with a port, a data folder and a memory budget of their own each."""

from __future__ import annotations

import subprocess
from typing import IO, TYPE_CHECKING, Self

import msgspec

from discovery.address import HostPort
from resources import starting
from runtime.agent.messages import AgentStarted
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from discovery.home import Home

NAMES = ("Apricot", "Cherry", "Damson", "Medlar", "Mulberry", "Peach", "Pear", "Quince")
"""Pomona's own; in alphabetical order, which is the order of nodes in the model until a person changes it."""
_MEMORY_GIB = (2, 4, 3)
_END_SECONDS = 15.0
_LOOPBACK = "127.0.0.1"


class VirtualNode(msgspec.Struct, frozen=True):
    """One of them: what it is called and how much memory a model may take on it."""

    name: str
    memory_bytes: int
    cpu_share: float | None = None
    """Of one core; None for all that the machine has."""


def virtual_nodes(count: int) -> tuple[VirtualNode, ...]:
    """The first ``count`` virtual nodes. Raises :class:`PomonaError` for more than there are names."""
    if not 1 <= count <= len(NAMES):
        raise PomonaError(f"A demo takes 1 to {len(NAMES)} nodes, not {count}.")
    return tuple(
        VirtualNode(name, _MEMORY_GIB[index % len(_MEMORY_GIB)] << 30) for index, name in enumerate(NAMES[:count])
    )


class VirtualNodes:
    """Agents that live as long as the ``with`` block, or as long as this process if it is killed.

    They and ``home`` trust each other: their certificates are handed over at their start, by their parent alone.
    """

    def __init__(self, nodes: Sequence[VirtualNode], home: Home, log_file: Path) -> None:
        self._nodes = nodes
        self._home = home
        self._log_file = log_file
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._log_file.open("ab") as log:
                self._processes.extend(self._start(node, log) for node in self._nodes)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, node: VirtualNode, log: IO[bytes]) -> subprocess.Popen[bytes]:
        command = starting.pomona("agent", "--owned", "--name", node.name, "--listen", "loopback")
        certificate = str(self._home.identity.certificate_path)
        share = [] if node.cpu_share is None else ["--virtual-cpu", str(node.cpu_share)]
        return subprocess.Popen(
            [*command, "--virtual-memory", str(node.memory_bytes), *share, "--trust", certificate],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends them in order
        )

    def started(self) -> list[AgentStarted]:
        """Wait until every agent listens, and trust it. Raises :class:`PomonaError` if one does not."""
        found: list[AgentStarted] = []
        for node, process in zip(self._nodes, self._processes, strict=True):
            assert process.stdout is not None  # it was asked for
            try:
                agent = msgspec.json.decode(process.stdout.readline(), type=AgentStarted)
            except msgspec.DecodeError as error:
                raise PomonaError(f"The virtual node {node.name} did not start; {self._log_file} says why.") from error
            self._home.trust.pair(agent.certificate, node.name, [HostPort(_LOOPBACK, agent.port)])
            found.append(agent)
        return found

    def close(self) -> None:
        """End them all; each ends its workers first."""
        for process in self._processes:
            assert process.stdin is not None  # it was asked for
            process.stdin.close()
        for process in self._processes:
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._processes.clear()
