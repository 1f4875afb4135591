"""What the strip under the cards says of a plan, as a frozen value with every word in place. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gui.formatting import rate_words, seconds_words
from runtime.planning.plan import Refusal, default_context_tokens

if TYPE_CHECKING:
    from gui.arrangement import Arrangement
    from gui.preview import Preview
    from gui.session import SessionState
    from runtime.models.layout import ModelLayout
    from runtime.planning.plan import Change, Goal, Plan, UnusedNode

GOAL_NAMES: dict[Goal, str] = {
    "chat": "Fastest Chat",
    "requests": "Most Requests",
    "even": "Even Split",
    "room": "Most Room Left",
}
_CONTEXTS = tuple(2**power for power in range(9, 21))
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
    """A session keeps everything as it is."""


def strip_view(
    preview: Preview | None, arrangement: Arrangement, session: SessionState, layout: ModelLayout | None
) -> StripView:
    """The strip for a plan and the state of the session."""
    if preview is None or layout is None or not preview.shares:
        return StripView()
    plan = session.plan if session.active and session.plan else preview.shown
    context = arrangement.context_tokens or default_context_tokens(layout)
    contexts = sorted(
        {*(count for count in _CONTEXTS if count <= layout.context_tokens), layout.context_tokens, context}
    )
    refused = preview.verdict if isinstance(preview.verdict, Refusal) and not session.active else None
    return StripView(
        speeds=_speeds(plan),
        tooltip=_tooltip(plan),
        contexts=tuple(contexts),
        context_tokens=context,
        changes=refused.changes if refused else (),
        unused=() if session.active or refused else arrangement.unused,
        warning=(plan.warning or "") if plan else "",
        locked=session.active,
    )


def context_words(tokens: int) -> str:
    """``8k``, ``512``, ``1000``."""
    return f"{tokens // 1024}k" if tokens % 1024 == 0 else str(tokens)


def _speeds(plan: Plan | None) -> tuple[tuple[str, str], ...]:
    if plan is None or plan.predicted is None:
        return ()
    predicted = plan.predicted
    return (
        ("One chat", rate_words(predicted.chat_tokens_per_second)),
        ("Many requests", rate_words(predicted.requests_tokens_per_second)),
        ("First token of 1k", seconds_words(predicted.ttft_seconds_1k)),
        ("of 16k", seconds_words(predicted.ttft_seconds_16k)),
    )


def _tooltip(plan: Plan | None) -> str:
    if plan is None:
        return ""
    lines = ["Predicted:"]
    for stage in plan.stages:
        names = " + ".join(rank.node_name for rank in stage.ranks)
        lines.append(f"{names}: {seconds_words_fine(stage.decode_seconds)} a token, {_SOURCES[stage.source]}")
    return "\n".join(lines)


def seconds_words_fine(seconds: float) -> str:
    """Milliseconds with a tenth, as a stage needs them."""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else seconds_words(seconds)
