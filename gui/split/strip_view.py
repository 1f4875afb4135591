"""What the strip under the cards says of a plan, as a frozen value with every word in place. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gui.formatting import and_words, bytes_words, context_words, count_words, rate_words, seconds_words
from runtime.planning.resplit import same_split
from runtime.planning.values import Refusal, default_context_tokens

if TYPE_CHECKING:
    from gui.arrangement import Arrangement
    from gui.preview import Preview
    from gui.session import SessionState
    from runtime.cluster.messages import MeasuredStage, RunMeasured
    from runtime.models.layout import ModelLayout
    from runtime.planning.resplit import Move
    from runtime.planning.values import Change, Goal, Plan, UnusedNode

GOAL_NAMES: dict[Goal, str] = {
    "chat": "Fastest Chat",
    "requests": "Most Requests",
    "even": "Even Split",
    "room": "Most Room Left",
}
_CONTEXTS = tuple(2**power for power in range(9, 21))
_SEEN_GAIN = 0.005
_SOURCES = {
    "table": "from the chip's table, nothing was measured",
    "calibrated": "from this node's calibration",
    "measured": "from what was measured before",
}


@dataclass(frozen=True, slots=True)
class StripView:
    """The predicted speeds, the context, and what can be clicked."""

    speeds: tuple[tuple[str, str], ...] = ()
    """What, and how much; one pair for each figure."""
    tooltip: str = ""
    contexts: tuple[int, ...] = ()
    """Those to choose from, in tokens; empty while none can be chosen."""
    context_tokens: int = 0
    changes: tuple[Change, ...] = ()
    """What would make a plan fit."""
    unused: tuple[UnusedNode, ...] = ()
    """Nodes that the best plan leaves out."""
    warning: str = ""
    locked: bool = False
    """A session keeps context and reserve as they are."""
    edited: bool = False
    """Another split is shown than the one that runs."""
    apply_words: str = ""
    """What applying it would take; empty while it cannot be."""
    offer_words: str = ""
    """Tensor groups that would be faster; empty if there are none."""
    rebalance_words: str = ""
    """What the split that follows from the run gains; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Measured:
    """How fast one chat was, and with which plan."""

    plan: Plan
    tokens_per_second: float


def strip_view(
    preview: Preview | None,
    arrangement: Arrangement,
    session: SessionState,
    layout: ModelLayout | None,
    move: Move | None = None,
    measured: Measured | None = None,
    *,
    edited: bool = False,
) -> StripView:
    """The strip for a plan and the state of the session."""
    if preview is None or layout is None or not preview.shares:
        return StripView()
    plan = session.plan if session.active and session.plan and not edited else preview.shown
    run = session.run if session.can_change else None
    context = arrangement.context_tokens or default_context_tokens(layout)
    contexts = sorted(
        {*(count for count in _CONTEXTS if count <= layout.context_tokens), layout.context_tokens, context}
    )
    refused = preview.verdict if isinstance(preview.verdict, Refusal) and (edited or not session.active) else None
    return StripView(
        speeds=_speeds(plan, measured),
        tooltip=_tooltip(plan, measured, run if not edited else None),
        contexts=tuple(contexts),
        context_tokens=context,
        changes=refused.changes if refused else (),
        unused=() if session.active or refused else arrangement.unused,
        warning=(plan.warning or "") if plan else "",
        offer_words="" if refused or arrangement.offer is None else f"Faster with {arrangement.offer.words}",
        locked=session.active,
        edited=edited,
        apply_words=move_words(move) if move is not None else "",
        rebalance_words=run.words if run is not None and run.proposal is not None and not edited else "",
    )


def move_words(move: Move) -> str:
    """``loads 2 layers on Cherry, about 6 s; chats go on``."""
    parts = [
        f"{count_words(load.layer_count, 'layer')} on {load.node_name}"
        if load.layer_count
        else f"{bytes_words(load.byte_count)} on {load.node_name}"
        for load in move.loads
    ]
    what = f"loads {and_words(parts)}" if len(parts) <= 3 else f"loads layers on {len(parts)} nodes"
    return f"{what if parts else 'loads nothing'}, about {_about_words(move.seconds)}; chats go on"


def _about_words(seconds: float) -> str:
    return seconds_words(seconds) if seconds >= 59.5 else f"{max(round(seconds), 1)} s"


def _speeds(plan: Plan | None, measured: Measured | None) -> tuple[tuple[str, str], ...]:
    if plan is None or plan.predicted is None:
        return ()
    predicted = plan.predicted
    chat = rate_words(predicted.chat_tokens_per_second)
    gain = _gain(plan, measured)
    if gain is not None:
        chat += f" {'▲' if gain > 0 else '▼'} {abs(gain):.0%}"
    at = f" at {context_words(plan.context_tokens)}" if plan.context_tokens else ""  # a full context is the slowest
    return (
        (f"One chat{at}", chat),
        ("Many requests", rate_words(predicted.requests_tokens_per_second)),
        ("First token of 1k", seconds_words(predicted.ttft_seconds_1k)),
        ("of 16k", seconds_words(predicted.ttft_seconds_16k)),
    )


def _gain(plan: Plan, measured: Measured | None) -> float | None:
    """How much faster one chat is predicted to be than with the split that was measured last."""
    if measured is None or plan.predicted is None or measured.plan.predicted is None:
        return None
    if same_split(plan, measured.plan):
        return None
    gain = plan.predicted.chat_tokens_per_second / measured.plan.predicted.chat_tokens_per_second - 1
    return gain if abs(gain) >= _SEEN_GAIN else None


def _tooltip(plan: Plan | None, measured: Measured | None, run: RunMeasured | None) -> str:
    if plan is None:
        return ""
    lines = [_run_words(stage) for stage in run.stages] if run is not None else []
    full = f", its context of {context_words(plan.context_tokens)} full" if plan.context_tokens else ""
    lines.append(f"Predicted{full}:")
    for stage in plan.stages:
        names = " + ".join(rank.node_name for rank in stage.ranks)
        lines.append(f"{names}: {seconds_words_fine(stage.decode_seconds)} a token, {_SOURCES[stage.source]}")
    if measured is not None:
        split = " | ".join(str(stage.layer_count) for stage in measured.plan.stages)
        lines.append(f"Measured with {split}: {rate_words(measured.tokens_per_second)} in one chat")
    return "\n".join(lines)


def _run_words(stage: MeasuredStage) -> str:
    names, predicted = " + ".join(stage.node_names), seconds_words_fine(stage.predicted_seconds)
    if stage.measured_seconds is None:
        return f"{names}: not measured yet, predicted {predicted} a token"
    return f"{names}: measured {seconds_words_fine(stage.measured_seconds)} a token, predicted {predicted}"


def seconds_words_fine(seconds: float) -> str:
    """Milliseconds with a tenth, as a stage needs them."""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else seconds_words(seconds)
