"""A session's way to ready, in plain lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.cli.place import note
from runtime.cluster.messages import Failed, LoadProgress, ModelFetch, PlanRefused, Ready, Serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from runtime.cluster.messages import ServerMessage

_MIB = 1 << 20
_SHARE = 0.1
"""Of a fetch or of loading, after which another line is due."""


class Progress:
    """Tells each message about loading once; ``serving`` is where programs reach the model, once that is known."""

    def __init__(self) -> None:
        self.serving: Serving | None = None
        self._phases: dict[int, str] = {}
        self._shares: dict[str, float] = {}

    async def until_ready(self, events: AsyncIterator[ServerMessage]) -> Ready | PlanRefused | None:
        """Tell how loading goes until the model is ready; None if it fails, which is told too."""
        async for event in events:
            self.tell(event)
            match event:
                case Ready() | PlanRefused():
                    return event
                case Failed(reason):
                    note(f"pomona: {reason}")
                case _:
                    pass
        return None

    def tell(self, event: ServerMessage) -> None:
        """One message."""
        match event:
            case LoadProgress(rank=rank, phase=phase) if self._phases.get(rank) != phase:
                self._phases[rank] = phase
                size = f" {event.total_bytes / _MIB:.0f} MB" if phase == "loading" else ""
                note(f"{event.node_name}: {phase}{size}")
            case LoadProgress(loaded_bytes=done, seconds_left=float()) if self._is_due(
                f"rank {event.rank}", done, event
            ):
                note(f"{event.node_name}: {_far_words(done, event)}")
            case ModelFetch(words=words) if words:
                note(words)
            case ModelFetch(node_id, done_bytes=done) if self._is_due(node_id, done, event):
                note(f"{event.node_name}: {_far_words(done, event)}")
            case PlanRefused(reason):
                note(f"pomona: {reason}")
            case Ready(warnings=warnings):
                for warning in warnings:
                    note(f"pomona: {warning}")
            case Serving():
                self.serving = event
            case _:
                pass

    def _is_due(self, name: str, done_bytes: int, event: LoadProgress | ModelFetch) -> bool:
        share = done_bytes / max(event.total_bytes, 1)
        if share - self._shares.get(name, -1.0) < _SHARE and share < 1:
            return False
        self._shares[name] = share
        return True


def _far_words(done_bytes: int, event: LoadProgress | ModelFetch) -> str:
    left = f", {event.seconds_left:.0f} s left" if event.seconds_left else ""
    rate = event.bytes_per_second / 1e6
    return f"{done_bytes / 1e9:.2f} of {event.total_bytes / 1e9:.2f} GB, {rate:.0f} MB/s{left}"
