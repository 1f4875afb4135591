"""Collects what a browser tells, and waits for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from discovery.announcement import Sighting
    from discovery.browser import Change


class Seen:
    """What a browser told, in order; other agents on this machine are passed over."""

    def __init__(self, *node_ids: str) -> None:
        self.events: list[tuple[Change, Sighting]] = []
        self._node_ids = set(node_ids)
        self._news = asyncio.Event()

    def __call__(self, change: Change, sighting: Sighting) -> None:
        if sighting.node_id in self._node_ids:
            self.events.append((change, sighting))
            self._news.set()

    async def until(self, enough: Callable[[list[tuple[Change, Sighting]]], bool]) -> None:
        async with asyncio.timeout(20):
            while not enough(self.events):
                self._news.clear()
                await self._news.wait()
