"""Fetches for the log pane what it wants, on the bridge's event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from gui.runner import sentence
from runtime.errors import PomonaError

if TYPE_CHECKING:
    from gui.bridge import Bridge
    from gui.logs.pane import LogPane
    from runtime.cluster.job_logs import LogsOfNode


class LogErrands(QObject):
    """Between a pane and a bridge, whose child it is.

    Signals:
        read: ``tuple[LogsOfNode, ...]``, of every node in reach.
        reported: ``(report, trouble)``; one of them is empty.
    """

    read = Signal(object)
    reported = Signal(str, str)

    def __init__(self, pane: LogPane, bridge: Bridge) -> None:
        super().__init__(bridge)
        self._bridge = bridge
        self.read.connect(pane.show_logs)
        self.reported.connect(pane.show_report)
        pane.logs_wanted.connect(self._on_logs)
        pane.report_wanted.connect(self._on_report)

    @Slot(str)
    def _on_logs(self, job: str) -> None:
        self._bridge.submit(self._read_logs(job))

    @Slot()
    def _on_report(self) -> None:
        self._bridge.submit(self._report())

    async def _read_logs(self, job: str) -> None:
        bridge = self._bridge
        found: tuple[LogsOfNode, ...] = ()
        try:
            found = await bridge.services.job_logs(bridge.home, bridge.nodes, job)
        finally:
            self.read.emit(found)

    async def _report(self) -> None:
        bridge = self._bridge
        try:
            self.reported.emit(await bridge.services.report(bridge.home, bridge.nodes), "")
        except (PomonaError, OSError) as error:
            self.reported.emit("", sentence(error))
