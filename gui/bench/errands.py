"""Measures for the benchmark pane, on the bridge's event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot

from gui.runner import sentence
from runtime.cluster.messages import Statistics
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from gui.bench.keeper import BenchKeeper
    from gui.bridge import Bridge
    from runtime.bench.order import BenchOrder
    from runtime.cluster.messages import RankHeld, ServerMessage, Serving, StageTimes


class BenchErrands(QObject):
    """Between a keeper and a bridge, whose child it is.

    Signals:
        told: A ``RoundDone`` or a ``Measured``.
        over: Why it ended before it was done; empty if it was done or cancelled.
    """

    told = Signal(object)
    over = Signal(str)

    def __init__(self, keeper: BenchKeeper, bridge: Bridge) -> None:
        super().__init__(bridge)
        self._bridge = bridge
        self._counted: tuple[StageTimes, ...] = ()
        self._measuring: asyncio.Task[None] | None = None
        # The counters are read on the loop, where they arrive: the window may be busy just then.
        bridge.session_message.connect(self._count, Qt.ConnectionType.DirectConnection)
        self.told.connect(keeper.tell)
        self.over.connect(keeper.over)
        keeper.measure_wanted.connect(self._on_measure)
        keeper.cancel_wanted.connect(self._on_cancel)

    @Slot(object, object, object)
    def _on_measure(self, order: BenchOrder, serving: Serving, ranks: tuple[RankHeld, ...]) -> None:
        self._bridge.submit(self._measure(order, serving, ranks))

    @Slot()
    def _on_cancel(self) -> None:
        self._bridge.submit(self._cancel())

    def _count(self, message: ServerMessage) -> None:
        if isinstance(message, Statistics):
            self._counted = message.stages

    async def _measure(self, order: BenchOrder, serving: Serving, ranks: tuple[RankHeld, ...]) -> None:
        measure, folder = self._bridge.services.measure, self._bridge.model_folder
        assert folder is not None  # its model runs
        self._measuring = asyncio.current_task()
        trouble = ""
        try:
            async for told in measure(serving, ranks, folder, order, lambda: self._counted):
                self.told.emit(told)
        except PomonaError as error:
            trouble = sentence(error)
        finally:
            self._measuring = None
            self.over.emit(trouble)

    async def _cancel(self) -> None:
        if self._measuring is not None:
            self._measuring.cancel()
