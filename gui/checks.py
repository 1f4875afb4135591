"""What is known of checked splits, and the badge that says it beside the model. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gui.formatting import and_words
from gui.split.card import Tone
from runtime.check.result import sentence, split_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.check.result import CheckResult
    from runtime.planning.plan import Mode, Plan

Known = dict[tuple["Mode", tuple[int, ...]], "CheckResult"]
"""Results with the installed versions, by mode and split."""


@dataclass(frozen=True, slots=True)
class Checks:
    """Results of the model that is shown, and the plan that is being checked."""

    known: Mapping[tuple[Mode, tuple[int, ...]], CheckResult] = field(default_factory=dict)
    running: Plan | None = None

    def finished(self, result: CheckResult | None) -> Checks:
        """After a check: with its result, or without one if it was cancelled or refused."""
        if result is None or result.refusal:
            return replace(self, running=None)
        return Checks({**self.known, (result.mode, result.split): result})


@dataclass(frozen=True, slots=True)
class Badge:
    """A few words and their colour; the tooltip has the rest."""

    words: str = ""
    tone: Tone = Tone.DIM
    tooltip: str = ""


def badge(plan: Plan | None, checks: Checks) -> Badge:
    """What is known of ``plan``: looked up, so that it costs nothing while a boundary is dragged."""
    if checks.running is not None:
        split = ", ".join(map(str, split_of(checks.running)))
        return Badge(
            "Checking…",
            Tone.BUSY,
            f"Worker processes on this Mac run the split {split}, and then the whole model runs alone. "
            "Cancel Check in the Model menu ends it.",
        )
    result = checks.known.get((plan.mode, split_of(plan))) if plan else None
    if result is None:
        return Badge()
    versions = and_words([f"{name} {version}" for name, version in result.versions.items()])
    tooltip = f"{sentence(result)} Checked on this Mac with {versions}."
    if result.identical:
        return Badge("✓ Verified identical", Tone.GOOD, tooltip)
    return Badge("✗ Differs from the whole model", Tone.BAD, tooltip)
