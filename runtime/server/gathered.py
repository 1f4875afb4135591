"""Answers in one piece, for clients that do not stream."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.server.ask import Call, Delta, End, TokenInfo, Usage

if TYPE_CHECKING:
    from runtime.server.ask import Event
    from runtime.server.generation import Generation


@dataclass(slots=True)
class Gathered:
    """One answer, whole."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    tokens: list[TokenInfo] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    end: End = field(default_factory=lambda: End("stop", Usage()))

    def add(self, event: Event) -> None:
        """One more event of it."""
        match event:
            case Delta("content", text, tokens):
                self.content.append(text)
                self.tokens += tokens
            case Delta(_, text):
                self.reasoning.append(text)
            case Call():
                self.calls.append(event)
            case End():
                self.end = event

    @property
    def text(self) -> str:
        return "".join(self.content)

    @property
    def thoughts(self) -> str:
        return "".join(self.reasoning)


async def gather(generation: Generation) -> list[Gathered]:
    """All answers. Raises :class:`ApiError`."""
    choices = [Gathered() for _ in range(generation.count)]
    async with aclosing(generation.batches()) as batches:
        async for batch in batches:
            for index, event in batch:
                choices[index].add(event)
    return choices
