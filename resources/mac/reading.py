"""Finding numbers and JSON in text that may be cut off, in another language, or something else altogether."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_MAX_DEPTH = 32


def whole(pattern: str, text: str) -> int | None:
    """The number in the first group of the first line that ``pattern`` matches; at most 18 digits are believed."""
    found = re.search(pattern, text, re.MULTILINE)
    return whole_number(found[1]) if found is not None else None


def whole_number(text: str) -> int | None:
    """``text`` as a number of 1 to 18 ASCII digits, blanks around it allowed."""
    found = re.fullmatch(r"\s*([0-9]{1,18})\s*", text)
    return int(found[1]) if found is not None else None


def as_json(text: str) -> Json:
    """What ``text`` holds as JSON; None for anything else."""
    try:
        decoded: Json = msgspec.json.decode(text.encode(errors="replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    return decoded


def objects(value: Json) -> list[dict[str, Json]]:
    """The objects in a list; nothing of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string(value: Json) -> str | None:
    """``value`` if it is a text that says something."""
    return value if isinstance(value, str) and value.strip() else None


def number(value: Json) -> float | None:
    """``value`` if it is a number; JSON's true and false are none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def nested(item: dict[str, Json], key: str, depth: int = 0) -> Iterator[dict[str, Json]]:
    """All objects under ``item[key]``, theirs under the same key too, outermost first; 32 levels at most."""
    if depth < _MAX_DEPTH:
        for child in objects(item.get(key)):
            yield child
            yield from nested(child, key, depth + 1)


def sysctl_values(output: str) -> dict[str, str]:
    """``sysctl a.b c.d`` prints ``a.b: value`` lines, without those that this Mac does not know."""
    found = re.findall(r"^([A-Za-z0-9_.]+): *(.*?)\s*$", output, re.MULTILINE)
    return {name: value for name, value in found if value}
