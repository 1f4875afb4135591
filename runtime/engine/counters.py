"""What a worker counts while it runs, over all its epochs. Each field is written by one thread alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.engine.stalls import Pace

if TYPE_CHECKING:
    from runtime.engine.frames import Step


@dataclass(slots=True)
class Counters:
    """Since the worker started."""

    steps: int = 0
    tokens: int = 0
    compute_seconds: float = 0.0
    wait_seconds: float = 0.0
    """Compute had nothing to do."""
    send_seconds: float = 0.0
    """Spent writing to the next stage, beside compute."""
    sent_bytes: int = 0
    """Hidden states handed to the next stage."""
    in_flight: int = 0
    """On the driver: steps that have not come back."""
    chat_steps: int = 0
    """In this epoch alone: steps of one token of one sequence, which plans predict."""
    chat_seconds: float = 0.0
    """Spent computing them."""
    chat_context_tokens: int = 0
    """What their sequences held before each of them, summed up."""

    step_tokens: int = 0
    """Of the step under way; 0 between steps."""
    pace: Pace = field(default_factory=Pace)
    """Of this epoch."""

    def begin_step(self, step: Step) -> None:
        """A step is under way."""
        self.step_tokens = len(step.tokens)

    def count_step(self, step: Step, seconds: float) -> None:
        """It was computed."""
        self.step_tokens = 0
        self.pace.add(len(step.tokens), seconds)
        self.steps += 1
        self.tokens += len(step.tokens)
        self.compute_seconds += seconds
        if len(step.tokens) == 1:
            self.chat_steps += 1
            self.chat_seconds += seconds
            self.chat_context_tokens += step.positions[0]

    def begin_epoch(self) -> None:
        """Other layers are here from now on."""
        self.step_tokens, self.pace = 0, Pace()
        self.chat_steps, self.chat_seconds, self.chat_context_tokens = 0, 0.0, 0
