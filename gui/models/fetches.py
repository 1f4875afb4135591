"""Fetches of models as frozen values with their words. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from gui.formatting import bytes_words, seconds_words

if TYPE_CHECKING:
    from runtime.agent.models.messages import FetchProgress, ModelOrder
    from runtime.cluster.nodes import KnownNode


class FetchState(Enum):
    """How a fetch stands."""

    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class NodeFetching:
    """How far one node is."""

    node_id: str
    name: str
    words: str = ""
    """What comes from where."""
    done_bytes: int = 0
    total_bytes: int = 0
    bytes_per_second: float = 0.0
    seconds_left: float | None = None

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.done_bytes / self.total_bytes if self.total_bytes else 0.0

    def progress_words(self, state: FetchState) -> str:
        """``12.3 of 40.1 GB · 1.1 GB/s · 25 s left``."""
        if not self.total_bytes:
            return "Asking who has what" if state is FetchState.RUNNING else ""
        done = f"{bytes_words(self.done_bytes)} of {bytes_words(self.total_bytes)}"
        if state is not FetchState.RUNNING or self.done_bytes >= self.total_bytes:
            return done
        left = f" · {seconds_words(self.seconds_left)} left" if self.seconds_left is not None else ""
        return f"{done} · {bytes_words(round(self.bytes_per_second))}/s{left}"


@dataclass(frozen=True, slots=True)
class Fetch:
    """One fetch, for one node or several."""

    key: str
    order: ModelOrder
    title: str
    nodes: tuple[NodeFetching, ...] = ()
    state: FetchState = FetchState.RUNNING
    trouble: str = ""
    for_split: bool = False
    """Each node gets its layers, rather than one node all of them."""

    def is_of(self, full_name: str, revision: str) -> bool:
        """Whether it is of this model."""
        return (self.order.repository or self.order.name) == full_name and self.order.revision == revision

    def told(self, node: KnownNode, words: str, progress: FetchProgress | None) -> Fetch:
        """After a word of a node."""
        resources = node.resources
        now = next((one for one in self.nodes if one.node_id == resources.node_id), None)
        if now is None:
            now = NodeFetching(resources.node_id, resources.name)
        if words:
            said = words.removeprefix(f"{resources.name}: ")
            now = replace(now, words=said[:1].upper() + said[1:])
        if progress is not None:
            now = replace(
                now,
                done_bytes=progress.done_bytes,
                total_bytes=progress.total_bytes,
                bytes_per_second=progress.bytes_per_second,
                seconds_left=progress.seconds_left,
            )
        others = {one.node_id: one for one in self.nodes} | {now.node_id: now}
        return replace(self, nodes=tuple(others.values()))

    @property
    def state_words(self) -> str:
        """How it stands, in a few words."""
        match self.state:
            case FetchState.RUNNING:
                return "Fetching"
            case FetchState.PAUSED:
                return "Paused; what has come stays"
            case FetchState.FAILED:
                return self.trouble
            case FetchState.DONE:
                return "Complete: every node has what it needs"
