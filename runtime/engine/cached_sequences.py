"""The sequences in the stages' caches: those of requests, and those that are kept for prompts that begin alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.engine.frames import Drop, Open, Prefix, Sampling
from runtime.engine.prefixes import KeptPrefixes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.engine.orders import CacheLimits
    from runtime.engine.rank import Rank
    from runtime.engine.requests import Request
    from runtime.engine.room import Room


class CachedSequences:
    """Opens and drops them on every stage, by frames that ``rank`` passes on. What is kept gives way to ``room``."""

    def __init__(self, rank: Rank, room: Room, limits: CacheLimits) -> None:
        self._rank = rank
        self._room = room
        kept_tokens = min(limits.prefix_tokens, limits.room_tokens)
        self._prefixes = KeptPrefixes(kept_tokens, rank.stage.trim_limit_tokens(), rank.stage.kept_limit)
        self._newest = 0

    def open(self, request: Request) -> None:
        """Give ``request`` caches, which begin with what is kept of the same tokens."""
        tokens = request.begin(self._new_sequence())
        prefix = None
        if (match := self._prefixes.match(tokens)) is not None:
            prefix = Prefix(match.sequence, match.token_count)
            request.skip(match.token_count)
        request.snapshots.extend(self._prefixes.snapshot_points(tokens, request.cached_tokens))
        self._rank.apply(Open(request.sequence, request.submit.sampling, prefix))
        self.shrink()  # only now: the new one may begin with one of them

    def close(self, request: Request) -> None:
        """Take them away; what they held is kept while nobody needs the room."""
        self._keep(request.sequence, request.sent)

    def snapshot(self, request: Request) -> None:
        """Keep a copy of what they hold now, if there is room for it."""
        if len(request.sent) > self._room.spare_tokens:
            return
        copy = self._new_sequence()
        self._rank.apply(Open(copy, Sampling(), Prefix(request.sequence, len(request.sent))))
        self._keep(copy, request.sent)

    def shrink(self) -> None:
        """Drop what there is no room for any more."""
        self._drop(self._prefixes.shrink(self._room.spare_tokens))

    def _keep(self, sequence: int, tokens: Sequence[int]) -> None:
        self._drop(self._prefixes.keep(sequence, tokens, self._room.spare_tokens))

    def _drop(self, sequences: Sequence[int]) -> None:
        if sequences:
            self._rank.apply(Drop(tuple(sequences)))

    def _new_sequence(self) -> int:
        self._newest += 1
        return self._newest
