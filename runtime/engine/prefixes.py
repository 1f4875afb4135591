"""Sequences that are over but stay in the caches, because the next prompt may begin as they do.

Pure: the driver alone decides, by token counts, and every stage obeys alike.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

KEPT_SEQUENCES = 16
WORTH_TOKENS = 8
"""Shorter common beginnings are not worth a copy of the caches."""


class Match(NamedTuple):
    """A kept sequence, and how many tokens of it a prompt begins with."""

    sequence: int
    token_count: int


class KeptPrefixes:
    """At most ``token_limit`` tokens in at most 16 sequences; the least recently used go first.

    ``trim_limit_tokens`` is the length up to which every cache of the model can be cut anywhere; recurrent and full
    sliding-window caches cannot, so there a kept sequence serves only prompts that begin with all of it.
    """

    def __init__(self, token_limit: int, trim_limit_tokens: int) -> None:
        self._token_limit = token_limit
        self._trim_limit_tokens = trim_limit_tokens
        self._kept: OrderedDict[int, array[int]] = OrderedDict()

    def match(self, prompt: Sequence[int]) -> Match | None:
        """The kept sequence that saves the most of ``prompt``. At least the prompt's last token is left to compute."""
        tokens = array("q", prompt)
        best: Match | None = None
        for sequence, kept in self._kept.items():
            common = min(_common_length(kept, tokens), len(tokens) - 1)
            if common < len(kept) and len(kept) > self._trim_limit_tokens:
                continue
            if common >= WORTH_TOKENS and (best is None or common > best.token_count):
                best = Match(sequence, common)
        if best is not None:
            self._kept.move_to_end(best.sequence)
        return best

    def keep(self, sequence: int, tokens: Sequence[int]) -> list[int]:
        """Keep a sequence whose caches hold ``tokens``; returns the sequences to drop, which may include itself.

        Kept ones that the new one begins with are superseded if they can be cut out of it again.
        """
        new = array("q", tokens)
        if not WORTH_TOKENS <= len(new) <= self._token_limit:
            return [sequence]
        dropped = [
            other
            for other, kept in self._kept.items()
            if len(kept) <= len(new) <= self._trim_limit_tokens and kept == new[: len(kept)]
        ]
        for other in dropped:
            del self._kept[other]
        self._kept[sequence] = new
        total = sum(map(len, self._kept.values()))
        while total > self._token_limit or len(self._kept) > KEPT_SEQUENCES:
            oldest, kept = self._kept.popitem(last=False)
            total -= len(kept)
            dropped.append(oldest)
        return dropped


def _common_length(first: array[int], second: array[int]) -> int:
    """By bisection over slices, which are compared at the speed of memory."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
