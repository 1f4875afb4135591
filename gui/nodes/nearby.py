"""A strip under the split: machines that are there and not paired, each with a button that begins to pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QFont, QPainter, QPen
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QScrollArea, QSizePolicy, QWidget

from gui.widgets.labels import ElidedLabel, label, set_ink

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gui.theme import Theme
    from runtime.cluster.nodes import UnpairedNode

_HEIGHT = 46
_NAME_WIDTH = 170


class NearbyCard(QWidget):
    """One machine.

    Signals:
        pair_wanted: The person wants to pair with it.
    """

    pair_wanted = Signal()

    def __init__(self, node: UnpairedNode, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.node = node
        self._theme = theme
        self.setObjectName(f"nearby_{node.node_id[:12]}")
        self.setAccessibleName(f"{node.name}, not paired")
        self._name = ElidedLabel("nearby_name", 12, QFont.Weight.DemiBold)
        self._name.setText(node.name)
        self._name.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._name.ensurePolished()  # only then it knows its font's measure
        self._name.setFixedWidth(min(self._name.sizeHint().width() + 2, _NAME_WIDTH))
        self._state = label("nearby_state", 11)
        self._state.setText("Shows its code" if node.shows_code else "Not paired")
        self.button = QPushButton("Pair…")
        self.button.setObjectName("nearby_pair")
        self.button.setAccessibleName(f"Pair with {node.name}")
        self.button.setToolTip(f"{node.host}, {node.node_id[:12]}")
        self.button.clicked.connect(self.pair_wanted)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 5, 6, 5)
        row.setSpacing(8)
        for part in (self._name, self._state, self.button):
            row.addWidget(part)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        set_ink(self._name, theme.text)
        set_ink(self._state, theme.dim)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(self._theme.surface)
        painter.setPen(QPen(self._theme.line, 1, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 10, 10)


class NearbyStrip(QScrollArea):
    """All of them in a row that scrolls; hidden while there are none.

    Signals:
        pair_wanted: ``UnpairedNode``: the person wants to pair with it.
    """

    pair_wanted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._nodes: tuple[UnpairedNode, ...] = ()
        self.cards: list[NearbyCard] = []
        self.setObjectName("nearby")
        self.setAccessibleName("Machines that are not paired")
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # it would cover the cards
        self.setFixedHeight(_HEIGHT)
        self.viewport().setAutoFillBackground(False)
        self.hide()

    def show_nodes(self, nodes: tuple[UnpairedNode, ...]) -> None:
        """Show other machines."""
        if nodes == self._nodes:
            return
        self._nodes = nodes
        self._fill()

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        for card in self.cards:
            card.set_theme(theme)

    def _fill(self) -> None:
        content = QWidget()
        content.setAutoFillBackground(False)
        row = QHBoxLayout(content)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        self.cards = [NearbyCard(node, self._theme) for node in self._nodes]
        for card in self.cards:
            card.pair_wanted.connect(self._on_pair_wanted)
            row.addWidget(card)
        row.addStretch()
        self.setWidget(content)  # deletes the one before
        self.setVisible(bool(self._nodes))

    def _on_pair_wanted(self) -> None:
        card = self.sender()
        assert isinstance(card, NearbyCard)
        self.pair_wanted.emit(card.node)
