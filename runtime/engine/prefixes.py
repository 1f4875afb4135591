"""Sequences that stay in the caches without a request, because the next prompt may begin as they do.

Finished sequences are kept. Where caches cannot be cut (recurrent state, a sliding window that is full), a kept
sequence serves only prompts that begin with all of it; so there copies are kept too, taken while a prompt goes in:
*snapshots*. One each time the prompt has doubled its length, one where it leaves a sequence that is kept (say, at the
end of a system prompt that two chats share), and one at its end. A later prompt that shares any beginning of a certain
length finds at least half of it.

Pure: the driver alone decides, by token counts, and every stage obeys alike.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from runtime.engine.caches import UNLIMITED_TOKENS

if TYPE_CHECKING:
    from collections.abc import Sequence

KEPT_SEQUENCES = 32
WORTH_TOKENS = 8
"""Shorter common beginnings are not worth a copy of the caches."""
FIRST_SNAPSHOT_TOKENS = 64


class Match(NamedTuple):
    """A kept sequence, and how many tokens of it a prompt begins with."""

    sequence: int
    token_count: int


class KeptPrefixes:
    """At most ``token_limit`` tokens in at most ``sequence_limit`` sequences; the least recently used go first.

    ``trim_limit_tokens`` is the length up to which every cache of the model can be cut anywhere.
    """

    def __init__(self, token_limit: int, trim_limit_tokens: int, sequence_limit: int = KEPT_SEQUENCES) -> None:
        self._token_limit = token_limit
        self._trim_limit_tokens = trim_limit_tokens
        self._sequence_limit = sequence_limit
        self._kept: OrderedDict[int, array[int]] = OrderedDict()

    @property
    def takes_snapshots(self) -> bool:
        """Whether whole sequences alone would serve too few prompts, and anything is kept at all."""
        return self._trim_limit_tokens < UNLIMITED_TOKENS and self._token_limit >= WORTH_TOKENS

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

    def snapshot_points(self, prompt: Sequence[int], cached_tokens: int) -> list[int]:
        """Lengths of ``prompt`` at which to take snapshots, ascending; ``cached_tokens`` of it are there already."""
        if not self.takes_snapshots:
            return []
        tokens = array("q", prompt)
        end = len(tokens) - 1  # the last token goes in with the first step of decoding
        branches = {_common_length(kept, tokens) for kept in self._kept.values()}
        points = {max(branches, default=0), end}
        point = max(FIRST_SNAPSHOT_TOKENS, self._trim_limit_tokens)  # that one can be cut to anything shorter
        while point < end:
            points.add(point)
            point *= 2
        least = max(cached_tokens + 1, WORTH_TOKENS)
        return sorted(point for point in points if least <= point <= end)

    def keep(self, sequence: int, tokens: Sequence[int], room_tokens: int = UNLIMITED_TOKENS) -> list[int]:
        """Keep a sequence whose caches hold ``tokens``; returns the sequences to drop, which may include itself.

        Kept ones that the new one begins with are superseded if they can be cut out of it again.
        """
        new = array("q", tokens)
        if not WORTH_TOKENS <= len(new) <= min(self._token_limit, room_tokens):
            return [sequence]
        dropped = [
            other
            for other, kept in self._kept.items()
            if len(kept) <= len(new)
            and (len(kept) == len(new) or len(new) <= self._trim_limit_tokens)
            and kept == new[: len(kept)]
        ]
        for other in dropped:
            del self._kept[other]
        self._kept[sequence] = new
        return dropped + self.shrink(room_tokens)

    def shrink(self, room_tokens: int) -> list[int]:
        """Keep at most so many tokens; returns the sequences to drop."""
        dropped: list[int] = []
        total = sum(map(len, self._kept.values()))
        while self._kept and (total > min(self._token_limit, room_tokens) or len(self._kept) > self._sequence_limit):
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
