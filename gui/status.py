"""The sentence beside Start: what is the case, and when nothing can start, why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gui.formatting import and_words, bytes_words, count_words
from gui.session import Phase
from gui.split.view import LOCKED, LOCKED_LOADING, Tone

if TYPE_CHECKING:
    from gui.preview import Preview
    from gui.session import SessionState
    from runtime.models.layout import ModelLayout


@dataclass(frozen=True, slots=True)
class Status:
    """What the window says and whether its main button may be pressed."""

    words: str
    tone: Tone
    can_start: bool = False


def status(layout: ModelLayout | None, preview: Preview | None, session: SessionState) -> Status:
    """The state of the window in one sentence."""
    match session.phase:
        case Phase.LOADING:
            done, total = bytes_words(session.loaded_bytes), bytes_words(session.total_bytes)
            return Status(f"Loading: {done} of {total}. {LOCKED_LOADING}.", Tone.BUSY)
        case Phase.RUNNING:
            return Status(f"Running on {_names(session)}. {LOCKED}.", Tone.GOOD)
        case Phase.STOPPING:
            return Status("Stopping: waiting until no worker is left.", Tone.BUSY)
        case Phase.IDLE:
            pass
    if layout is None or preview is None:
        return Status("Reading the model…", Tone.DIM)
    if not preview.shares:
        return Status("Nothing can start yet: no node is in reach.", Tone.DIM)
    if preview.plan is None:
        return Status(preview.refusal or "", Tone.BAD)
    ranks = count_words(preview.plan.rank_count, "node")
    layers = count_words(preview.plan.layer_count, "layer")
    if preview.mode == "tensor":
        return Status(f"Ready to start: every one of {layers} shared by {ranks}.", Tone.DIM, can_start=True)
    return Status(f"Ready to start: {layers} on {ranks}.", Tone.DIM, can_start=True)


def _names(session: SessionState) -> str:
    stages = session.plan.stages if session.plan else ()
    names = [rank.node_name for stage in stages for rank in stage.ranks]
    return and_words(names) if len(names) <= 4 else count_words(len(names), "node")
