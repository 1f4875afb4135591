"""The steps that are under way, and how long the stages took for those that have come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.engine.hop import HopError
from runtime.engine.schedule import Pipeline, StepTimes

if TYPE_CHECKING:
    from runtime.engine.frames import Stepped
    from runtime.engine.groups import Group


@dataclass(frozen=True, slots=True)
class Flight:
    """A step that has not come back."""

    requests: tuple[int, ...]
    group: Group | None
    """None for a chunk of a prompt."""
    rows: int
    """Tokens of a chunk, sequences of a group."""
    prompt_tokens: int = 0
    """How far the prompt has gone with this chunk."""


class Flights:
    """Numbers steps in the order in which they leave, and measures them by kind when they are back."""

    def __init__(self, stage_count: int) -> None:
        self.sent_count = 0
        """The number of the next step."""
        self.decode = Pipeline([StepTimes() for _ in range(stage_count)])
        self.prefill = Pipeline([StepTimes() for _ in range(stage_count)])
        self._under_way: dict[int, Flight] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def chunk_count(self) -> int:
        """Chunks of prompts among them."""
        return sum(flight.group is None for flight in self._under_way.values())

    def begin(self, flight: Flight) -> None:
        """The next step leaves."""
        self._under_way[self.sent_count] = flight
        self.sent_count += 1

    def land(self, stepped: Stepped) -> Flight:
        """A step is back. Raises :class:`HopError` if it was not under way, or not through every stage."""
        flight = self._under_way.pop(stepped.number, None)
        if flight is None or len(stepped.stage_seconds) != len(self.decode.stages):
            raise HopError(f"step {stepped.number} came back, which was not under way")
        pipeline = self.prefill if flight.group is None else self.decode
        for times, seconds in zip(pipeline.stages, stepped.stage_seconds, strict=True):
            times.add(flight.rows, seconds)
        return flight
