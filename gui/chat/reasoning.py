"""What a model thinks before it answers: it stands between marks at the beginning of its text. No Qt."""

from __future__ import annotations

from typing import NamedTuple

_OPEN, _CLOSE = "<think>", "</think>"


class Spoken(NamedTuple):
    """A text in its two parts."""

    reasoning: str
    answer: str
    thinking: bool
    """Whether the reasoning goes on."""


def spoken(text: str) -> Spoken:
    """Part what is thought from what is said. Some templates open the reasoning themselves, so only its end is seen."""
    begin = text.lstrip()
    if begin.startswith(_OPEN):
        thought, closed, rest = begin.removeprefix(_OPEN).partition(_CLOSE)
        return Spoken(thought.strip("\n"), rest.lstrip("\n"), thinking=not closed)
    thought, closed, rest = text.partition(_CLOSE)
    if closed:
        return Spoken(thought.strip("\n"), rest.lstrip("\n"), thinking=False)
    if begin and _OPEN.startswith(begin):  # the mark itself is on its way
        return Spoken("", "", thinking=True)
    return Spoken("", text, thinking=False)
