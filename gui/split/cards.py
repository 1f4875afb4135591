"""A node's card as a widget: it can be dragged, has the keyboard, and a menu of what can be done with its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from gui.split.card_painter import CardPainter

if TYPE_CHECKING:
    from PySide6.QtGui import QContextMenuEvent, QFocusEvent, QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent

    from gui.split.card import CardView
    from gui.theme import Theme

_MORE_SIZE = 22
_HINT = "Drag the card to change the order of the nodes, or press Alt with an arrow key. Delete leaves it out."


class NodeCard(QWidget):
    """Paints one :class:`CardView`.

    Signals:
        dragged: The middle of the card was dragged to this point of the parent.
        dropped: The card was let go.
        cancelled: Esc was pressed while it was dragged.
        moved: By so many places, wanted by key or menu.
        leave_wanted: The node shall take no part.
        return_wanted: The node shall take part again.
        join_wanted: It and the next one shall share every layer of theirs.
        apart_wanted: The nodes of its group shall be stages of their own.
        memory_wanted: The person wants to say how much of its memory is to be used.
    """

    dragged = Signal(QPoint)
    dropped = Signal()
    cancelled = Signal()
    moved = Signal(int)
    leave_wanted = Signal()
    return_wanted = Signal()
    join_wanted = Signal()
    apart_wanted = Signal()
    memory_wanted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._view: CardView | None = None
        self._hue = QColor()
        self._theme: Theme | None = None
        self._grabbed: QPoint | None = None
        self._dragging = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.more = QPushButton("⋯", self)
        self.more.setProperty("quiet", True)
        self.more.setFlat(True)
        self.more.setFixedSize(_MORE_SIZE + 6, _MORE_SIZE)
        self.more.clicked.connect(self._on_more)

    @property
    def view(self) -> CardView | None:
        return self._view

    @property
    def dragging(self) -> bool:
        return self._dragging

    def show_card(self, view: CardView, hue: QColor, theme: Theme) -> None:
        """Show another state; paints only when something changed."""
        if (view, hue, theme) == (self._view, self._hue, self._theme):
            return
        self._view, self._hue, self._theme = view, hue, theme
        self.setObjectName(f"card_{view.node_id}")
        self.setToolTip(view.tooltip if view.locked else f"{view.tooltip}\n{_HINT}")
        self.setAccessibleName(view.name)
        said = (view.chip, view.layers, f"{view.number} {view.unit}", view.words, view.link)
        self.setAccessibleDescription(". ".join(part for part in said if part))
        self.more.setObjectName(f"more_{view.node_id}")
        self.more.setAccessibleName(f"More of {view.name}")
        self.more.setToolTip(f"What can be done with {view.name}")
        self.update()

    def menu(self) -> QMenu | None:
        """What can be done with this node now; None before it shows one."""
        view = self._view
        if view is None:
            return None
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        entries = (
            ("Move Left", lambda: self.moved.emit(-1), view.locked or ("It is the first" if view.is_first else "")),
            ("Move Right", lambda: self.moved.emit(1), view.locked or ("It is the last" if view.is_last else "")),
            ("Put Back In", self.return_wanted.emit, view.locked)
            if view.is_out
            else ("Leave Out", self.leave_wanted.emit, view.locked or view.needed_words),
            (
                "Share Layers with the Next",
                self.join_wanted.emit,
                view.locked or ("There is no next one" if view.is_last else ""),
            ),
            *([("Take the Group Apart", self.apart_wanted.emit, view.locked)] if view.in_group else []),
            ("Memory for Pomona…", self.memory_wanted.emit, ""),
        )
        for text, does, reason in entries:
            action = menu.addAction(text)
            action.triggered.connect(does)
            action.setEnabled(not reason)
            action.setToolTip(reason)
        return menu

    def sizeHint(self) -> QSize:
        return QSize(220, 146)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.more.move(self.width() - self.more.width() - 5, self.height() - self.more.height() - 5)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._view is None or self._theme is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        CardPainter(
            painter, QRectF(self.rect()), self._view, self._hue, self._theme, focused=self.hasFocus() or self._dragging
        ).paint()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self._view is not None and not self._view.locked:
            self._grabbed = event.position().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grabbed is None:
            return
        way = event.position().toPoint() - self._grabbed
        if self._dragging or way.manhattanLength() > 8:
            self._dragging = True
            self.raise_()
            self.move(self.pos() + way)
            self.dragged.emit(self.geometry().center())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self._end_drag():
            self.dropped.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, view = event.key(), self._view
        if key == Qt.Key.Key_Escape and self._end_drag():
            self.cancelled.emit()
        elif view is None or self._dragging or not self._obey(key, event.modifiers(), view):
            event.ignore()

    def _obey(self, key: int, modifiers: Qt.KeyboardModifier, view: CardView) -> bool:
        """Do what a key wants; False if it wants nothing."""
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        if key in {Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Menu}:
            self._on_more()
        elif view.locked:
            return False
        elif modifiers & Qt.KeyboardModifier.AltModifier and key in steps:
            self.moved.emit(steps[Qt.Key(key)])
        elif key in {Qt.Key.Key_Delete, Qt.Key.Key_Backspace} and not view.is_out and not view.needed_words:
            self.leave_wanted.emit()
        else:
            return False
        return True

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self._open_menu(event.globalPos())

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def _end_drag(self) -> bool:
        was, self._dragging, self._grabbed = self._dragging, False, None
        return was

    def _on_more(self) -> None:
        self._open_menu(self.more.mapToGlobal(QPoint(0, self.more.height())))

    def _open_menu(self, place: QPoint) -> None:
        menu = self.menu()
        if menu is not None:
            menu.aboutToHide.connect(menu.deleteLater)
            menu.popup(place)
