"""Asking one node at several places: some of its addresses may belong to networks that lead nowhere from here."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from runtime.agent.calls import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from discovery.address import HostPort

T = TypeVar("T")


async def first_answer(
    places: Sequence[HostPort],
    ask: Callable[[HostPort], Awaitable[T]],
    *,
    first_alone_seconds: float,
    next_seconds: float,
) -> tuple[HostPort, T]:
    """The first answer, and where it came from. The places are asked in order, and none waits long for another.

    The next one is asked when one has failed, or after ``next_seconds``; the first has ``first_alone_seconds`` for
    itself. When one has answered the others are given up. Raises the :class:`NoAnswer` of the first place if all fail.
    """
    waiting = deque(places)
    asking: set[asyncio.Task[tuple[HostPort, T]]] = set()
    failures: dict[HostPort, NoAnswer] = {}
    patience_seconds = first_alone_seconds

    async def ask_at(place: HostPort) -> tuple[HostPort, T]:
        try:
            return place, await ask(place)
        except NoAnswer as error:
            failures[place] = error
            raise

    try:
        while waiting or asking:
            if waiting:
                asking.add(asyncio.create_task(ask_at(waiting.popleft()), name="asking a node"))
            done, asking = await asyncio.wait(
                asking, timeout=patience_seconds if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            patience_seconds = next_seconds
            for task in done:
                if not isinstance(task.exception(), NoAnswer):
                    return task.result()
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    raise failures[places[0]] if places else NoAnswer("it has no address")
