"""The dialog about one node's memory: where it is now, and how much of it Pomona may use at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QSlider

from gui.formatting import bytes_words, round_bytes_words
from gui.nodes.dialogs import SmallDialog
from gui.widgets.labels import label, set_ink
from resources.words import memory_words

if TYPE_CHECKING:
    from gui.theme import Theme
    from gui.window import Window
    from resources.node import NodeResources

_STEPS = 200


class MemoryDialog(SmallDialog):
    """A slider; what it says is sent when it is let go, and kept by the node.

    Signals:
        cap_wanted: ``(node id, bytes)``; None instead of bytes is the usual amount.
    """

    cap_wanted = Signal(str, object)

    def __init__(self, node: NodeResources, theme: Theme, parent: Window) -> None:
        super().__init__(
            "memory_dialog",
            f"Memory on {node.name}",
            "Plans keep to this amount; a model that runs goes on. The usual amount leaves more where someone works.",
            theme,
            parent,
        )
        self.node = node
        self._wanted: int | None = None
        """What was sent last and has not come back as the node's own word."""
        self.amount = label("memory_amount", 14, QFont.Weight.DemiBold)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setObjectName("memory_slider")
        self.slider.setAccessibleName(f"How much of the memory of {node.name} Pomona may use at most")
        self.slider.setRange(0, _STEPS)
        self.slider.setPageStep(_STEPS // 20)
        self.slider.valueChanged.connect(self._on_value)
        self.slider.sliderReleased.connect(self._send)
        self.facts = label("memory_facts", 12, wrap=True)
        set_ink(self.amount, theme.text)
        set_ink(self.facts, theme.dim)
        for part in (self.amount, self.slider, self.facts):
            self.body.addWidget(part)
        self.usual = self.add_button("memory_usual", "Usual Amount")
        self.usual.clicked.connect(self._on_usual)
        self.add_button("memory_close", "Done", primary=True).clicked.connect(self.close)
        self.show_node(node)
        self.adjustSize()

    @property
    def cap_bytes(self) -> int:
        """What the slider says."""
        return self.node.memory_total_bytes * self.slider.value() // _STEPS

    def show_node(self, node: NodeResources) -> None:
        """The node has changed; a slider that is held stays where it is."""
        self.node = node
        self.facts.setText(f"Now: {memory_words(node)}.")
        self.usual.setEnabled(node.memory_cap_is_chosen)
        self.usual.setToolTip("" if node.memory_cap_is_chosen else "It is the usual amount already")
        if node.memory_cap_bytes == self._wanted:
            self._wanted = None
        if not self.slider.isSliderDown() and self._wanted is None:
            cap = node.memory_total_bytes if node.memory_cap_bytes is None else node.memory_cap_bytes
            self.slider.blockSignals(True)
            self.slider.setValue(-(-cap * _STEPS // node.memory_total_bytes))
            self.slider.blockSignals(False)
            self._tell(cap)

    def _tell(self, cap_bytes: int) -> None:
        total = round_bytes_words(self.node.memory_total_bytes)
        self.amount.setText(f"Pomona may use at most {bytes_words(cap_bytes)} of {total}")

    def _on_value(self) -> None:
        self._tell(self.cap_bytes)
        if not self.slider.isSliderDown():  # moved by a key or the wheel
            self._send()

    def _send(self) -> None:
        self._wanted = self.cap_bytes
        self.cap_wanted.emit(self.node.node_id, self.cap_bytes)

    def _on_usual(self) -> None:
        self._wanted = None
        self.cap_wanted.emit(self.node.node_id, None)
