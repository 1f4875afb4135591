"""The split editor: puts the painted bar, the boundaries and the cards together, and turns moves into wishes."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QPainter, QRegion
from PySide6.QtWidgets import QSizePolicy, QWidget

from gui.formatting import count_words
from gui.split import bar
from gui.split.cards import NodeCard
from gui.split.geometry import BAR_HEIGHT, BAR_TOP, Geometry, nice_height
from gui.split.handle import BoundaryHandle
from gui.split.view import EditorView
from gui.theme import sized_font

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from gui.split.card import CardView
    from gui.theme import Theme

_EMPTY_TITLE = "Looking for Macs…"
_EMPTY_HINT = "Start Pomona on each Mac of this network. They appear here by themselves."


class SplitEditor(QWidget):
    """Shows an :class:`EditorView`; it never changes the split itself.

    Signals:
        drag_started: A boundary was grabbed.
        boundary_wanted: ``(boundary, cut)``: a person moves a boundary, by key or by one step of a drag.
        drag_finished: The boundary was let go, and where it is now counts.
        drag_cancelled: Esc was pressed: where it was before counts.
        balance_wanted: A boundary was double-clicked.
        order_wanted: ``(node id, place)``: this node shall be at this place in the order of the model.
        leave_wanted: The node with this id shall take no part.
        join_wanted: The node with this id and the next one shall share every layer of theirs.
        apart_wanted: The group of the node with this id shall be stages of their own.
        return_wanted: It shall take part again.
        memory_wanted: How much of its memory is to be used.
    """

    drag_started = Signal()
    boundary_wanted = Signal(int, int)
    drag_finished = Signal()
    drag_cancelled = Signal()
    balance_wanted = Signal(int)
    order_wanted = Signal(str, int)
    leave_wanted = Signal(str)
    join_wanted = Signal(str)
    apart_wanted = Signal(str)
    return_wanted = Signal(str)
    memory_wanted = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._view = EditorView()
        self._geometry_kept = self._geometry(0)
        self._bubble_painted: QRectF | None = None
        self.handles: list[BoundaryHandle] = []
        self.cards: list[NodeCard] = []
        self.setObjectName("split_editor")
        self.setAccessibleName("Split of the model over the nodes")
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # the model runs from its first layer to its last
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setMinimumWidth(640)

    @property
    def view(self) -> EditorView:
        return self._view

    @property
    def geometry_now(self) -> Geometry:
        wanted = self._geometry(self.width())
        if wanted != self._geometry_kept:
            self._geometry_kept = wanted
        return self._geometry_kept

    def _geometry(self, width: float) -> Geometry:
        view = self._view
        return Geometry(width, view.layer_count, len(view.cards), view.has_links)

    def set_theme(self, theme: Theme) -> None:
        """Repaint in another appearance."""
        self._theme = theme
        self._sync()

    def set_view(self, view: EditorView) -> None:
        """Show another state."""
        if view == self._view:
            return
        recounted = len(view.cards) != len(self._view.cards)
        resized = recounted or view.has_links != self._view.has_links
        before, self._view = self._view, view
        if recounted:
            self._make_children(len(view.cards))
        if resized:
            self.updateGeometry()
        self._sync(bar.changed_extent(self.geometry_now, before, view))

    def _make_children(self, count: int) -> None:
        for widget in (*self.handles, *self.cards):
            widget.hide()
            widget.deleteLater()
        self.cards = [NodeCard(self) for _ in range(count)]
        self.handles = [BoundaryHandle(index, self._layer_at, self) for index in range(count - 1)]
        for handle in self.handles:
            handle.wanted.connect(self._on_wanted)
            handle.grabbed.connect(self.drag_started)
            handle.released.connect(self.drag_finished)
            handle.cancelled.connect(self.drag_cancelled)
            handle.balance_wanted.connect(self._on_balance_wanted)
            handle.look_changed.connect(self._repaint_bar)
        for card in self.cards:
            card.dragged.connect(self._on_card_dragged)
            card.dropped.connect(self._on_card_dropped)
            card.cancelled.connect(self._sync)
            card.moved.connect(self._on_card_moved)
            card.leave_wanted.connect(self._on_leave_wanted)
            card.join_wanted.connect(self._on_join_wanted)
            card.apart_wanted.connect(self._on_apart_wanted)
            card.return_wanted.connect(self._on_return_wanted)
            card.memory_wanted.connect(self._on_memory_wanted)
        for widget in (*self.cards, *self.handles):
            widget.show()

    def _layer_at(self, x: float) -> int:
        return self.geometry_now.layer_at(x)

    def _on_wanted(self, cut: int) -> None:
        handle = self.sender()
        assert isinstance(handle, BoundaryHandle)
        self.boundary_wanted.emit(handle.index, cut)

    def _on_balance_wanted(self) -> None:
        handle = self.sender()
        assert isinstance(handle, BoundaryHandle)
        self.balance_wanted.emit(handle.index)

    def _card(self) -> tuple[int, CardView]:
        """The card that sends a signal, and its place."""
        index = self.cards.index(cast("NodeCard", self.sender()))
        return index, self._view.cards[index]

    def _on_card_dragged(self, middle: QPoint) -> None:
        """Make room where the card would lie."""
        index, _card = self._card()
        target = self.geometry_now.place_at(middle.x(), middle.y())
        others = [place for place in range(len(self.cards)) if place != index]
        others.insert(target, index)
        for place, other in enumerate(others):
            if other != index:
                self.cards[other].setGeometry(self.geometry_now.cards[place].toAlignedRect())

    def _on_card_dropped(self) -> None:
        index, card = self._card()
        middle = self.cards[index].geometry().center()
        place = self.geometry_now.place_at(middle.x(), middle.y())
        self._sync()
        if place != index:
            self.order_wanted.emit(card.node_id, place)

    def _on_card_moved(self, places: int) -> None:
        index, card = self._card()
        place = index + places
        if 0 <= place < len(self.cards):
            self.order_wanted.emit(card.node_id, place)
            self.cards[place].setFocus()

    def _on_leave_wanted(self) -> None:
        self.leave_wanted.emit(self._card()[1].node_id)

    def _on_join_wanted(self) -> None:
        self.join_wanted.emit(self._card()[1].node_id)

    def _on_apart_wanted(self) -> None:
        self.apart_wanted.emit(self._card()[1].node_id)

    def _on_return_wanted(self) -> None:
        self.return_wanted.emit(self._card()[1].node_id)

    def _on_memory_wanted(self) -> None:
        self.memory_wanted.emit(self._card()[1].node_id)

    def _sync(self, changed: tuple[float, float] | None = None) -> None:
        """Put the children where the view says, and repaint between the ends of what ``changed``, or everything."""
        geometry, view = self.geometry_now, self._view
        for index, (widget, card) in enumerate(zip(self.cards, view.cards, strict=True)):
            if not widget.dragging:
                widget.setGeometry(geometry.cards[index].toAlignedRect())
            widget.show_card(card, self._theme.hue(card.hue), self._theme)
        edges = [0, *accumulate(view.counts)]
        grips = geometry.grips(edges[1:-1])
        for index, handle in enumerate(self.handles):
            handle.setVisible(not view.tensor and view.cards[handle.index + 1].leader is None)
            handle.set_look(self._theme)
            if view.tensor:
                continue
            handle.show_value(edges[index], edges[index + 2], edges[index + 1])
            handle.place(grips[index], geometry.reach(grips, index), BAR_TOP - 4, BAR_HEIGHT + 8)
            left, right = view.cards[index], view.cards[index + 1]
            counts = [count_words(view.counts[one], "layer") for one in (index, index + 1)]
            handle.describe(left.name, counts[0], right.name, counts[1], view.locked)
        self.setToolTip(view.locked or "")
        self._repaint_bar(changed)

    def _repaint_bar(self, changed: tuple[float, float] | None = None) -> None:
        """Repaint what this widget paints: all but the cards, which repaint themselves when they change."""
        extents = [changed or (0.0, float(self.width()))]
        extents += [bar.bubble_extent(box) for box in (self._bubble_painted, self._bubble()[0]) if box is not None]
        left, right = (int(min(left for left, _ in extents)) - 2, int(max(right for _, right in extents)) + 3)
        region = QRegion(left, 0, right - left, self.height())
        for card in self.cards:
            region -= QRegion(card.geometry())
        self.update(region)

    def _bubble(self) -> tuple[QRectF | None, float, str]:
        """Where the bubble lies, over which grip, and what it says; nowhere while no boundary is moved."""
        active = next((handle for handle in self.handles if handle.wants_bubble), None)
        if active is None:
            return None, 0.0, ""
        text = f"{self._view.counts[active.index]} | {self._view.counts[active.index + 1]}"
        return bar.bubble_box(self.geometry_now, active.grip_x, text), active.grip_x, text

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return nice_height(self._geometry(width))

    def sizeHint(self) -> QSize:
        return QSize(1000, self.heightForWidth(max(self.width(), 640)))

    def minimumSizeHint(self) -> QSize:
        return QSize(640, self.heightForWidth(max(self.width(), 640)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.updateGeometry()
        self._sync()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        geometry, view, theme = self.geometry_now, self._view, self._theme
        if not view.cards:
            bar.paint_ruler(painter, geometry, theme, None)
            bar.paint_empty(painter, geometry, theme)
            self._paint_empty_words(painter, geometry)
            return
        bubble, grip, text = self._bubble()
        self._bubble_painted = bubble
        bar.paint_ruler(painter, geometry, theme, bubble)
        if view.tensor:
            bar.paint_tensor(painter, geometry, view, theme)
        else:
            bar.paint_pipeline(painter, geometry, view, theme, QRectF(event.rect()))
        if bubble is not None:
            bar.paint_bubble(painter, bubble, grip, text, theme)

    def _paint_empty_words(self, painter: QPainter, geometry: Geometry) -> None:
        box = QRectF(geometry.bar)
        box.translate(0, box.height() + 44)
        painter.setFont(sized_font(17, QFont.Weight.DemiBold))
        painter.setPen(self._theme.text)
        painter.drawText(box, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, _EMPTY_TITLE)
        box.translate(0, 30)
        painter.setFont(sized_font(13))
        painter.setPen(self._theme.dim)
        painter.drawText(box, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, _EMPTY_HINT)
