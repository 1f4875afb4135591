"""What the probes' outputs say. Pure functions; text that they do not understand gives None, never an exception."""

from __future__ import annotations

import re

UNKNOWN = "unknown"
UNKNOWN_CHIP = "unknown chip"

MAX_NAME_CHARACTERS = 80

_CPUINFO_MODEL = re.compile(r"^(?:model name|cpu model|Model)[ \t]*:[ \t]*(\S.*)$", re.MULTILINE)
_MARKS = re.compile(r"\((?:R|TM|C)\)|[®™©]", re.IGNORECASE)
_CLOCK = re.compile(r"@.*$|\b\d+(?:\.\d+)?\s*[GM]Hz\b", re.IGNORECASE)
_FILLER = re.compile(r"\b(?:CPU|Processor|\w+-Core)\b", re.IGNORECASE)


def tidy(text: str) -> str | None:
    """``text`` on one line, without what does not print, cut to a length that fits a card; None if nothing is left."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line[:MAX_NAME_CHARACTERS].rstrip() or None


def chip_from_cpuinfo(output: str) -> str | None:
    """The processor that Linux's ``/proc/cpuinfo`` names, without trade marks, clock and filler words.

    x86 says ``model name``, MIPS ``cpu model``, a Raspberry Pi ``Model``; most ARM servers say nothing.
    """
    found = _CPUINFO_MODEL.search(output)
    if found is None:
        return None
    name = _MARKS.sub(" ", found[1])
    name = _FILLER.sub(" ", _CLOCK.sub(" ", name))
    return tidy(name)
