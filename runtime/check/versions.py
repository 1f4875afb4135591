"""The versions that the result of a check depends on."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    return tuple((name, version(name)) for name in ("pomona", "mlx", "mlx-lm"))


def versions() -> dict[str, str]:
    """What a result depends on: the installed versions."""
    return dict(_versions())
