"""Opens the dialog about a node's memory over the window, and keeps it in step with the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gui.nodes.memory import MemoryDialog

if TYPE_CHECKING:
    from gui.window import Window
    from runtime.cluster.nodes import KnownNode


class MemoryKeeper(QObject):
    """At most one dialog is open.

    Signals:
        cap_wanted: ``(KnownNode, bytes)``: Pomona may use so much of its memory; None is the usual amount.
    """

    cap_wanted = Signal(object, object)

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        self._nodes: dict[str, KnownNode] = {}
        self.dialog: MemoryDialog | None = None

    def open(self, node_id: str) -> None:
        """Ask how much of this node's memory is to be used."""
        known = self._nodes.get(node_id)
        if known is None:
            return
        self.close()
        self.dialog = MemoryDialog(known.resources, self._window.appearance.theme, self._window)
        self.dialog.cap_wanted.connect(self._on_cap_wanted)
        self.dialog.finished.connect(self._on_closed)
        self.dialog.show()
        self.dialog.slider.setFocus()

    def show_nodes(self, nodes: tuple[KnownNode, ...]) -> None:
        """The nodes, or what they have, changed; the dialog of one that is gone closes."""
        self._nodes = {known.resources.node_id: known for known in nodes}
        if self.dialog is not None:
            known = self._nodes.get(self.dialog.node.node_id)
            if known is None:
                self.close()
            elif known.resources != self.dialog.node:
                self.dialog.show_node(known.resources)

    def close(self) -> None:
        """The window goes, or another node's dialog comes."""
        if self.dialog is not None:
            self.dialog.close()

    def _on_cap_wanted(self, node_id: str, cap_bytes: int | None) -> None:
        self.cap_wanted.emit(self._nodes[node_id], cap_bytes)

    def _on_closed(self) -> None:
        if self.sender() is self.dialog:
            self.dialog = None
