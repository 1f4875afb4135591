"""The ranks of a session, epoch after epoch: started, connected, rebuilt for another plan, let go.

A worker whose node is in the next plan stays, with the layers that it has. Ranks that MLX's ring joins are started
anew, because it cannot be made twice in a process.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

from runtime.cluster.launch import connect_order, rank_states
from runtime.engine.orders import PeerLost, Rebuild, WorkerFailed
from runtime.errors import PomonaError
from runtime.signs import Signs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runtime.cluster.launch import JobFacts, RankState
    from runtime.cluster.links import Link
    from runtime.cluster.nodes import KnownNode
    from runtime.engine.orders import AnyReport, Connect
    from runtime.planning.values import Plan

STALL_SECONDS = 120.0
"""A rank that shows no progress for so long while it loads counts as hanging."""


class Hands(Protocol):
    """What starts workers and passes on orders: the agents of a session, or the very process."""

    async def start(self, rank: RankState) -> None:
        """Start the worker of ``rank`` with its launch order."""

    async def order(self, rank: RankState, order: Connect | Rebuild) -> None:
        """Give it an order."""

    async def end_rank(self, rank: RankState) -> None:
        """Have its worker ended."""


class Crew:
    """Keeps what is known of each rank. Reports come by :meth:`take`, on the loop that runs the rest."""

    def __init__(self, hands: Hands, facts: JobFacts, on_progress: Callable[[RankState], None]) -> None:
        self._hands = hands
        self._facts = facts
        self._on_progress = on_progress
        self.ranks: list[RankState] = []
        """Those of the newest plan, in order."""
        self.epoch = -1
        """How often the pipeline was built, less one."""
        self.is_leaving = False
        """Whether this epoch is not to go on: another is about to be built."""
        self._by_number: dict[int, RankState] = {}
        self._next_number = 0
        self._signs: Signs[int] = Signs()
        self._alive: set[int] = set()
        """The numbers of workers that were started and have not been let go."""
        self._changed = asyncio.Event()
        self._error: PomonaError | None = None

    async def build(
        self,
        plan: Plan,
        nodes: Sequence[KnownNode],
        folders: Mapping[str, str] | None = None,
        links: Sequence[Link] = (),
    ) -> None:
        """Bring up the pipeline of ``plan`` over ``links``; the workers of an earlier one that fit stay.

        ``folders`` has the model's folder on each node, by its id, where that is not the same on all of them.

        Raises :class:`PomonaError` when a rank makes no progress, or as told by :meth:`fail`.
        """
        self.epoch += 1
        self.is_leaving = False
        self._signs = Signs()
        before, self.ranks = self.ranks, rank_states(self._facts, plan, nodes, links, self.epoch)
        staying = {_place(rank): rank.number for rank in before if _can_stay(rank) and rank.number in self._alive}
        for rank in self.ranks:
            rank.load_from((folders or {}).get(rank.planned.node_id, ""))
            number = staying.pop(_place(rank), None) if _can_stay(rank) else None
            if number is None:
                rank.give_number(self._next_number, is_new=True)
                self._next_number += 1
            else:
                rank.give_number(number, is_new=False)
        self._by_number = {rank.number: rank for rank in self.ranks}
        for rank in before:
            if rank.number in self._alive and rank.number not in self._by_number:
                self._alive.discard(rank.number)
                await self._hands.end_rank(rank)
        for rank in self.ranks:
            rank.last_sign_seconds = time.monotonic()
            self._on_progress(rank)
            if rank.is_new:
                await self._hands.start(rank)
                self._alive.add(rank.number)
            else:
                await self._hands.order(rank, Rebuild(rank.launch))
        await self._until(lambda: all(rank.hop_port for rank in self.ranks))
        for rank in self.ranks:
            await self._hands.order(rank, connect_order(rank, self.ranks))
        await self._until(lambda: all(rank.phase == "ready" for rank in self.ranks))

    def rank(self, number: int) -> RankState | None:
        """The rank whose worker has this number; None for one that was let go."""
        return self._by_number.get(number)

    def take(self, number: int, report: AnyReport) -> RankState | None:
        """What a worker reported; returns its rank, None for one that was let go."""
        rank = self._by_number.get(number)
        if rank is not None:
            rank.last_sign_seconds = time.monotonic()
            if rank.take(report):
                self._on_progress(rank)
            if isinstance(report, PeerLost | WorkerFailed):
                self._signs.forget(number)
            elif rank.phase == "ready":
                self._signs.hear(number)
            self._changed.set()
        return rank

    def is_alive(self, number: int) -> bool:
        """Whether this worker was started, and neither lost nor let go."""
        return number in self._alive

    def leave(self) -> None:
        """This epoch is not to go on."""
        self.is_leaving = True

    def lose(self, number: int) -> None:
        """This worker is gone, or about to be ended: another takes its place when the pipeline is built again."""
        self._alive.discard(number)
        self._signs.forget(number)

    def look(self, now_seconds: float) -> None:
        """To be called several times a second."""
        self._signs.look(now_seconds)

    def silent(self, limit_seconds: float) -> list[RankState]:
        """Loaded ranks whose workers have reported nothing for so long: they do so every second."""
        return [self._by_number[number] for number in self._signs.silent(limit_seconds)]

    def lose_node(self, node_id: str) -> None:
        """The same for all workers of a node."""
        for rank in self.ranks:
            if rank.planned.node_id == node_id:
                self.lose(rank.number)

    def fail(self, error: PomonaError) -> None:
        """Have :meth:`build`, if it is under way, raise ``error``."""
        self._error = error
        self._changed.set()

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            if self._error is not None:
                raise self._error
            self._changed.clear()
            slowest = min(
                (rank for rank in self.ranks if rank.phase != "ready"), key=lambda rank: rank.last_sign_seconds
            )
            try:
                async with asyncio.timeout(max(0.0, slowest.last_sign_seconds + STALL_SECONDS - time.monotonic())):
                    await self._changed.wait()
            except TimeoutError:
                raise PomonaError(
                    f"{slowest.planned.node_name} made no progress for {STALL_SECONDS:.0f} s while {slowest.phase}; "
                    "look at its log and start again."
                ) from None


def _place(rank: RankState) -> tuple[str, str]:
    """A worker goes on listening at the address where it began."""
    return rank.planned.node_id, rank.launch.host


def _can_stay(rank: RankState) -> bool:
    return rank.launch.ranks_in_stage == 1 and not rank.launch.over_mlx
