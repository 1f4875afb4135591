"""The state of the running session as one frozen value, and how each message from the controller changes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from runtime.cluster.messages import Ended, Failed, LoadProgress, RankHeld, Ready

if TYPE_CHECKING:
    from runtime.cluster.messages import ServerMessage
    from runtime.planning.plan import Plan


class Phase(Enum):
    """Where a session is: idle, loading, running, stopping, idle again. A failure leads to idle from anywhere."""

    IDLE = "idle"
    LOADING = "loading"
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is known of the session; ``failure`` stays until the next start or until someone dismisses it."""

    phase: Phase = Phase.IDLE
    plan: Plan | None = None
    progress: tuple[LoadProgress, ...] = ()
    """The newest of each rank, in rank order."""
    held: tuple[RankHeld, ...] = ()
    failure: Failed | None = None

    @property
    def active(self) -> bool:
        return self.phase is not Phase.IDLE

    def progress_of(self, node_id: str) -> LoadProgress | None:
        """How far the rank on a node has loaded."""
        return next((one for one in self.progress if one.node_id == node_id), None)

    def held_by(self, node_id: str) -> RankHeld | None:
        """What the rank on a node truly holds."""
        return next((one for one in self.held if one.node_id == node_id), None)

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


def started(plan: Plan) -> SessionState:
    """Someone pressed Start."""
    return SessionState(Phase.LOADING, plan)


def stopping(state: SessionState) -> SessionState:
    """Someone pressed Stop, or cancelled the loading."""
    return replace(state, phase=Phase.STOPPING) if state.active else state


def received(state: SessionState, message: ServerMessage) -> SessionState:
    """After a message from the controller; messages about answers change nothing here."""
    match message:
        case LoadProgress() if state.active:
            others = [one for one in state.progress if one.rank != message.rank]
            return replace(state, progress=tuple(sorted([*others, message], key=lambda one: one.rank)))
        case Ready() if state.phase in {Phase.LOADING, Phase.RUNNING}:
            return replace(state, phase=Phase.RUNNING, plan=message.plan, held=message.ranks)
        case Failed():
            return SessionState(failure=message)
        case Ended():
            return SessionState(failure=state.failure)
        case _:
            return state
