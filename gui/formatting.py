"""Quantities as words for a person.

Macs show memory in GB and mean 2**30 bytes; so does this window.
"""

from __future__ import annotations

from math import ceil

MIB = 2**20
GIB = 2**30


def split_bytes(count: int) -> tuple[str, str]:
    """Number and unit of ``count`` bytes apart, since the window sets them in different sizes: ``("162.9", "GB")``."""
    if round(count / MIB) >= 1024:
        return f"{count / GIB:.1f}", "GB"
    if count >= 10 * MIB or count == 0:
        return f"{count / MIB:.0f}", "MB"
    return f"{max(count / MIB, 0.1):.1f}", "MB"


def context_words(tokens: int) -> str:
    """``8k``, ``512``, ``1000``."""
    return f"{tokens // 1024}k" if tokens % 1024 == 0 else str(tokens)


def bytes_words(count: int) -> str:
    """A measured amount, to a tenth of a GB: ``162.9 GB``, ``115 MB``."""
    number, unit = split_bytes(count)
    return f"{number} {unit}"


def in_unit_words(count: int, unit: str) -> str:
    """The number alone, in the unit that stands beside it: ``162.9`` for GB, ``115`` for MB."""
    return f"{count / GIB:.1f}" if unit == "GB" else f"{count / MIB:.0f}"


def missing_bytes_words(count: int) -> str:
    """An amount that is lacking, never rounded down: ``16.8 GB``, ``3 MB``."""
    if count >= GIB:
        return f"{ceil(count * 10 / GIB) / 10:.1f} GB"
    return bytes_words(ceil(count / MIB) * MIB)


def round_bytes_words(count: int) -> str:
    """An amount that people know by heart, such as the memory of a Mac: ``178 GB``, ``2 GB``, ``1.5 GB``."""
    if count < GIB:
        return bytes_words(count)
    gib = count / GIB
    return f"{gib:.0f} GB" if gib >= 10 else f"{gib:.1f}".removesuffix(".0") + " GB"


def rate_words(tokens_per_second: float) -> str:
    """``31.2 tok/s``; without the tenth above a thousand."""
    if tokens_per_second >= 1000:
        return f"{tokens_per_second:,.0f} tok/s"
    return f"{tokens_per_second:.1f} tok/s"


def seconds_words(seconds: float) -> str:
    """A duration as exact as matters at its size: ``40 ms``, ``0.4 s``, ``42 s``, ``1 min 5 s``, ``2 h 3 min``."""
    seconds = max(seconds, 0.0)
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count_words(count: int, noun: str) -> str:
    """``1 layer``, ``30 layers``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def layers_words(first_layer: int, last_layer: int) -> str:
    """A run of layers, counted from 0 as models do, both ends included: ``layers 5–22``, ``layer 29``."""
    return f"layer {first_layer}" if first_layer == last_layer else f"layers {first_layer}–{last_layer}"


def and_words(names: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
