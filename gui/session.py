"""The state of the running session as one frozen value, and how each message from the controller changes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from runtime.cluster.messages import (
    Ended,
    Failed,
    LoadProgress,
    ModelFetch,
    PlanRefused,
    RankHeld,
    Ready,
    Recovering,
    RunMeasured,
    Serving,
)

if TYPE_CHECKING:
    from runtime.cluster.messages import ServerMessage, UsedLink
    from runtime.planning.values import Plan


class Phase(Enum):
    """Where a session is: idle, loading, running, stopping, idle again. A failure leads to idle from anywhere."""

    IDLE = "idle"
    LOADING = "loading"
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Change:
    """A running session goes over to another plan: because a person wants it, or because something was lost."""

    began_seconds: float
    reason: str = ""
    """What was lost, in a sentence; empty if a person wants it."""
    node_id: str | None = None
    """Where it was lost."""

    @property
    def is_loss(self) -> bool:
        return bool(self.reason)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a change."""

    change: Change
    seconds: float
    """How long answers paused."""
    read_bytes: int
    """What had to be loaded."""
    without: str | None = None
    """The name of the node that has no part any more."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is known of the session; ``failure`` stays until the next start or until someone dismisses it."""

    phase: Phase = Phase.IDLE
    plan: Plan | None = None
    progress: tuple[LoadProgress, ...] = ()
    """The newest of each rank, in rank order."""
    fetches: tuple[ModelFetch, ...] = ()
    """The newest of each node that gets what its layers need, before it loads."""
    held: tuple[RankHeld, ...] = ()
    links: tuple[UsedLink, ...] = ()
    change: Change | None = None
    """While the session goes over to another plan."""
    outcome: Outcome | None = None
    """Of the newest change."""
    run: RunMeasured | None = None
    """How the stages of this plan ran, and the split that follows; None until chats have ended."""
    lost: frozenset[str] = frozenset()
    """Ids of nodes that the session goes on without."""
    began_seconds: float = 0.0
    load_bytes_per_second: float | None = None
    """Of the node with most to load, when the session started."""
    failure: Failed | None = None
    serving: Serving | None = None
    """Where programs reach the model, once the controller has said so."""
    returned_bytes: int | None = None
    """What came back of the last session's memory, if all of it did."""

    @property
    def active(self) -> bool:
        return self.phase is not Phase.IDLE

    @property
    def can_change(self) -> bool:
        """Whether it may go over to another split now."""
        return (
            self.phase is Phase.RUNNING
            and self.change is None
            and self.plan is not None
            and self.plan.mode == "pipeline"
        )

    def progress_of(self, node_id: str) -> LoadProgress | None:
        """How far the rank on a node has loaded."""
        return next((one for one in self.progress if one.node_id == node_id), None)

    def fetch_of(self, node_id: str) -> ModelFetch | None:
        """What a node still fetches; None if it has all."""
        fetch = next((one for one in self.fetches if one.node_id == node_id), None)
        return fetch if fetch is not None and fetch.done_bytes < fetch.total_bytes else None

    def held_by(self, node_id: str) -> RankHeld | None:
        """What the rank on a node truly holds."""
        return next((one for one in self.held if one.node_id == node_id), None)

    @property
    def held_bytes(self) -> dict[str, int]:
        """What each node holds, by its id."""
        return {one.node_id: one.held_bytes for one in self.held}

    @property
    def loaded_bytes(self) -> int:
        return sum(one.loaded_bytes for one in self.progress)

    @property
    def total_bytes(self) -> int:
        """Bytes of all ranks; those that have said nothing yet count as planned."""
        heard = {one.node_id for one in self.progress}
        planned = [rank for stage in (self.plan.stages if self.plan else ()) for rank in stage.ranks]
        return sum(one.total_bytes for one in self.progress) + sum(
            rank.weight_bytes for rank in planned if rank.node_id not in heard
        )


def started(plan: Plan, now_seconds: float = 0.0) -> SessionState:
    """Someone pressed Start."""
    return SessionState(Phase.LOADING, plan, began_seconds=now_seconds)


def stopping(state: SessionState) -> SessionState:
    """Someone pressed Stop, or cancelled the loading."""
    return replace(state, phase=Phase.STOPPING, change=None) if state.active else state


def changing(state: SessionState, now_seconds: float) -> SessionState:
    """Someone asked for another split of the running model."""
    return replace(state, change=Change(now_seconds), progress=(), outcome=None)


def received(state: SessionState, message: ServerMessage, now_seconds: float = 0.0) -> SessionState:
    """After a message from the controller; messages about answers change nothing here."""
    match message:
        case LoadProgress() | ModelFetch() if state.active:
            return _progressed(state, message)
        case Ready() if state.phase in {Phase.LOADING, Phase.RUNNING}:
            return _ready(state, message, now_seconds)
        case Recovering() if state.phase is Phase.RUNNING:
            change = Change(now_seconds, message.reason, message.node_id)
            return replace(state, change=change, progress=(), outcome=None)
        case RunMeasured() if state.phase is Phase.RUNNING and message.stages:
            return replace(state, run=message)
        case PlanRefused() if state.change is not None and not state.change.is_loss:
            return replace(state, change=None, progress=())
        case Serving() if state.active:
            return replace(state, serving=message)
        case Failed() | Ended():
            return _over(state, message)
        case _:
            return state


def _over(state: SessionState, message: Failed | Ended) -> SessionState:
    if isinstance(message, Failed):
        return SessionState(failure=message)
    memory = message.memory
    whole = memory and not any(back.memory.missing_bytes for back in memory)
    returned = sum(back.memory.held_bytes for back in memory) if whole else None
    return SessionState(failure=state.failure, returned_bytes=returned)


def _progressed(state: SessionState, message: LoadProgress | ModelFetch) -> SessionState:
    """A rank or a node is a step further."""
    if isinstance(message, ModelFetch):
        rest = [one for one in state.fetches if one.node_id != message.node_id]
        return replace(state, fetches=(*rest, message))
    others = [one for one in state.progress if one.rank != message.rank]
    return replace(state, progress=tuple(sorted([*others, message], key=lambda one: one.rank)))


def _ready(state: SessionState, ready: Ready, now_seconds: float) -> SessionState:
    outcome, rate, lost = state.outcome, state.load_bytes_per_second, state.lost
    seconds = now_seconds - state.began_seconds
    if state.phase is Phase.LOADING and seconds > 0:
        rate = max((one.held_bytes for one in ready.ranks), default=0) / seconds or None
    if state.change is not None:
        planned = set(ready.plan.node_ids)
        gone = [one for one in state.held if one.node_id not in planned and one.node_id == state.change.node_id]
        lost = (lost | {one.node_id for one in gone}) - planned
        outcome = Outcome(
            state.change,
            now_seconds - state.change.began_seconds,
            sum(one.read_bytes for one in ready.ranks),
            gone[0].node_name if gone else None,
        )
    return replace(
        state,
        phase=Phase.RUNNING,
        plan=ready.plan,
        held=ready.ranks,
        links=ready.links,
        progress=(),
        fetches=(),
        change=None,
        outcome=outcome,
        run=None,
        load_bytes_per_second=rate,
        lost=lost,
    )
