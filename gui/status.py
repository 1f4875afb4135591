"""The sentence beside Start: what is the case, and when nothing can start, why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gui.formatting import and_words, bytes_words, count_words, seconds_words
from gui.session import Phase
from gui.split.card import Tone
from gui.split.view import LOCKED_LOADING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.preview import Preview
    from gui.session import SessionState
    from runtime.cluster.messages import LoadProgress, ModelFetch
    from runtime.models.layout import ModelLayout


@dataclass(frozen=True, slots=True)
class Status:
    """What the window says and whether its main button may be pressed."""

    words: str
    tone: Tone
    can_start: bool = False


def status(
    layout: ModelLayout | None, preview: Preview | None, session: SessionState, *, edited: bool = False
) -> Status:
    """The state of the window in one sentence. ``edited``: another split is shown than the one that runs."""
    match session.phase:
        case Phase.LOADING:
            return Status(f"{_loading_words(session)} {LOCKED_LOADING}.", Tone.BUSY)
        case Phase.RUNNING:
            return _running(session, preview, edited=edited)
        case Phase.STOPPING:
            return Status("Stopping: waiting until no worker is left.", Tone.BUSY)
        case Phase.IDLE:
            pass
    if layout is None or preview is None:
        return Status("Nothing can start yet: choose a model.", Tone.DIM)
    if not preview.shares:
        return Status("Nothing can start yet: no node is in reach.", Tone.DIM)
    if preview.plan is None:
        return Status(preview.refusal or "", Tone.BAD)
    ranks = count_words(len(preview.plan.ranks), "node")
    layers = count_words(preview.plan.layer_count, "layer")
    back = f"Stopped: {bytes_words(session.returned_bytes)} of memory came back. " if session.returned_bytes else ""
    if preview.mode == "tensor":
        words = f"Ready to start: every one of {layers} shared by {ranks}."
    else:
        words = f"Ready to start: {layers} on {ranks}."
    return Status(back + words, Tone.DIM, can_start=True)


def _loading_words(session: SessionState) -> str:
    fetching = [one for one in session.fetches if one.done_bytes < one.total_bytes]
    if fetching:
        done, total = sum(one.done_bytes for one in fetching), sum(one.total_bytes for one in fetching)
        return f"Fetching: {bytes_words(done)} of {bytes_words(total)}{_pace_words(fetching)}."
    far = f"{bytes_words(session.loaded_bytes)} of {bytes_words(session.total_bytes)}"
    return f"Loading: {far}{_pace_words(session.progress)}."


def _pace_words(steps: Sequence[ModelFetch | LoadProgress]) -> str:
    """How fast all of them are together, and how long the slowest takes yet, as far as that is known."""
    rate = sum(one.bytes_per_second for one in steps)
    left = [one.seconds_left for one in steps if one.seconds_left is not None]
    words = f" at {bytes_words(round(rate))}/s" if rate > 0 else ""
    return f"{words}, {seconds_words(max(left))} left" if left else words


def _running(session: SessionState, preview: Preview | None, *, edited: bool) -> Status:
    where = f"Running on {_names(session)}."
    change, outcome = session.change, session.outcome
    if change is not None and change.is_loss:
        lost = [name for node_id, name in _ranks(session) if node_id == change.node_id]  # the banner says why
        without = f"Going on without {lost[0]}" if lost else f"{change.reason} Going on without it"
        return Status(f"{without}: answers pause and go on.", Tone.WARN)
    if change is not None:
        return Status("Changing the split: answers pause and go on.", Tone.BUSY)
    if edited and preview is not None and preview.refusal:
        return Status(f"{where} This split cannot be applied: {preview.refusal}", Tone.BAD)
    if edited:
        return Status(f"{where} The split that is shown is not applied yet.", Tone.WARN)
    if outcome is not None and outcome.change.is_loss:
        without = f" without {outcome.without}" if outcome.without else ""
        return Status(f"{where} It went on{without} after {seconds_words(outcome.seconds)}.", Tone.GOOD)
    if outcome is not None:
        read = f"{bytes_words(outcome.read_bytes)} were loaded" if outcome.read_bytes else "nothing had to be loaded"
        return Status(f"{where} The split changed in {seconds_words(outcome.seconds)}; {read}.", Tone.GOOD)
    return Status(where, Tone.GOOD)


def _ranks(session: SessionState) -> list[tuple[str, str]]:
    """Id and name of every node with a part, in model order."""
    stages = session.plan.stages if session.plan else ()
    return [(rank.node_id, rank.node_name) for stage in stages for rank in stage.ranks]


def _names(session: SessionState) -> str:
    names = [name for _, name in _ranks(session)]
    return and_words(names) if len(names) <= 4 else count_words(len(names), "node")
