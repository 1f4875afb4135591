"""The kinds of layer that a model has, to be told apart in the bar and in words. No Qt."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING

from gui.formatting import and_words, count_words

if TYPE_CHECKING:
    from runtime.models.layout import ModelLayout


class Kind(Enum):
    """What is particular about a layer; its value says it after a number."""

    DENSE = "dense"
    EXPERTS = "with experts"
    SLIDING = "with a sliding window"
    LINEAR = "linear"


def layer_kinds(layout: ModelLayout) -> tuple[Kind, ...]:
    """One for each layer. A layer of which a token reads only a part has experts."""
    caches = layout.figures.caches if layout.figures is not None else ()
    active = layout.layer_active_bytes or layout.layer_bytes
    kinds = []
    for index, (whole, read) in enumerate(zip(layout.layer_bytes, active, strict=True)):
        cache = caches[index] if index < len(caches) else None
        if cache is not None and cache.kind == "constant":
            kinds.append(Kind.LINEAR)
        elif cache is not None and cache.kind == "sliding":
            kinds.append(Kind.SLIDING)
        else:
            kinds.append(Kind.EXPERTS if read < whole else Kind.DENSE)
    return tuple(kinds)


def layers_of_kinds(kinds: tuple[Kind, ...]) -> str:
    """``61 layers``, or ``61 layers, 3 dense and 58 with experts``."""
    counts = Counter(kinds)
    words = count_words(len(kinds), "layer")
    if len(counts) < 2:
        return words
    parts = [f"{count} {kind.value}" for kind, count in sorted(counts.items(), key=lambda item: kinds.index(item[0]))]
    return f"{words}, {and_words(parts)}"
