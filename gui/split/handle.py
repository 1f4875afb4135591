"""One boundary: a slider whose value is its cut, so that focus, keys and accessibility are Qt's own."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QAbstractSlider

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QWheelEvent
    from PySide6.QtWidgets import QWidget

    from gui.theme import Theme

PAGE_LAYERS = 5
_TYPING_SECONDS = 1.2
"""A digit that comes later than this after the last begins another number."""
_LOOK_EVENTS = (QEvent.Type.HoverEnter, QEvent.Type.HoverLeave, QEvent.Type.FocusIn, QEvent.Type.FocusOut)
_HINT = (
    "Drag it, use the arrow keys (with Shift: five layers), or type the number of layers on its left.\n"
    "Double-click shares the layers of the two nodes by their free memory."
)


class BoundaryHandle(QAbstractSlider):
    """The grip between two nodes.

    Signals:
        wanted: The person wants the boundary at this cut, by key or while dragging.
        grabbed: A drag begins.
        released: A drag ends and what it moved counts.
        cancelled: A drag was given up with Esc.
        balance_wanted: The person double-clicked.
        look_changed: Hover, focus or drag changed, so a bubble may have to come or go.
    """

    wanted = Signal(int)
    grabbed = Signal()
    released = Signal()
    cancelled = Signal()
    balance_wanted = Signal()
    look_changed = Signal()

    def __init__(self, index: int, layer_at: Callable[[float], int], parent: QWidget) -> None:
        super().__init__(parent)
        self.index = index
        self._layer_at = layer_at
        self._grab_offset = 0.0
        self._dragging = False
        self._grip = 0.0
        self._typed = ""
        self._typed_seconds = 0.0
        self._theme: Theme | None = None
        self._described: tuple[str, str | None] = ("", None)
        self.setObjectName(f"boundary_{index}")
        self.setOrientation(Qt.Orientation.Horizontal)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.SplitHCursor)
        self.setSingleStep(1)
        self.setPageStep(PAGE_LAYERS)
        self.setTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.valueChanged.connect(self.wanted)  # assistive technology sets the value itself

    @property
    def dragging(self) -> bool:
        return self._dragging

    @property
    def wants_bubble(self) -> bool:
        """While it is dragged, and while keys move it."""
        return self._dragging or (self.isEnabled() and self.hasFocus())

    @property
    def grip_x(self) -> float:
        """The middle of the grip, in the parent's coordinates."""
        return self.x() + self._grip

    def set_look(self, theme: Theme) -> None:
        """Take the colours of an appearance."""
        if theme is not self._theme:
            self._theme = theme
            self.update()

    def place(self, grip: float, reach: tuple[float, float], top: float, height: float) -> None:
        """Lie over ``reach`` with the grip at ``grip``, both in the parent's coordinates."""
        left, right = round(reach[0]), round(reach[1])
        box = QRect(left, round(top), max(right - left, 1), round(height))
        if (box, grip - left) != (self.geometry(), self._grip):
            self._grip = grip - left
            self.setGeometry(box)
            self.update()

    def show_value(self, low: int, high: int, cut: int) -> None:
        """Show a cut that was decided elsewhere; nobody is told."""
        if (low, high, cut, cut) == (self.minimum(), self.maximum(), self.value(), self.sliderPosition()):
            return
        blocked = self.blockSignals(True)
        self.setRange(low, high)
        self.setSliderPosition(cut)
        self.setValue(cut)
        self.blockSignals(blocked)

    def describe(self, left: str, left_layers: str, right: str, right_layers: str, locked: str | None) -> None:
        """Name the boundary for assistive technology, and say in the tooltip what can be done with it."""
        held = f"{left} holds {left_layers}, {right} holds {right_layers}"
        if (held, locked) == self._described:
            return
        self._described = held, locked
        self.setAccessibleName(f"Boundary between {left} and {right}")
        self.setAccessibleDescription(f"{held}. {locked}." if locked else held)
        self.setEnabled(locked is None)
        self.setToolTip(f"{held}.\n{locked}." if locked else f"{held}.\n{_HINT}")

    def nudge(self, layers: int) -> None:
        """Ask for a move by a number of layers."""
        self.wanted.emit(min(max(self.value() + layers, self.minimum()), self.maximum()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        step = PAGE_LAYERS if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        steps = {
            Qt.Key.Key_Left: -step,
            Qt.Key.Key_Down: -step,
            Qt.Key.Key_Right: step,
            Qt.Key.Key_Up: step,
            Qt.Key.Key_PageDown: -PAGE_LAYERS,
            Qt.Key.Key_PageUp: PAGE_LAYERS,
            Qt.Key.Key_Home: self.minimum() - self.value(),
            Qt.Key.Key_End: self.maximum() - self.value(),
        }
        if event.text().isdecimal() and event.text().isascii() and not self._dragging:
            self._type(event.text())
        elif key == Qt.Key.Key_Escape and self._dragging:
            self._end_drag()
            self.cancelled.emit()
        elif key in steps and not self._dragging:
            self.nudge(steps[Qt.Key(key)])
        else:
            event.ignore()

    def _type(self, digit: str) -> None:
        """Digits in a row make the number of layers that the left node shall have."""
        now = monotonic()
        self._typed = digit if now - self._typed_seconds > _TYPING_SECONDS else self._typed + digit
        self._typed_seconds = now
        self.wanted.emit(min(self.minimum() + int(self._typed[-4:]), self.maximum()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._grab_offset = event.position().x() - self._grip
        self._dragging = True
        self.setSliderDown(True)
        self.grabbed.emit()
        self.look_changed.emit()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragging:
            x = self.x() + event.position().x() - self._grab_offset
            self.wanted.emit(min(max(self._layer_at(x), self.minimum()), self.maximum()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._dragging and event.button() is Qt.MouseButton.LeftButton:
            self._end_drag()
            self.released.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self.balance_wanted.emit()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.EnabledChange and self._dragging and not self.isEnabled():
            self._end_drag()  # locked under the mouse, which is not heard any more
            self.released.emit()
        super().changeEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # scrolling past must not move layers

    def event(self, event: QEvent) -> bool:
        if event.type() in _LOOK_EVENTS:
            self.update()
            self.look_changed.emit()
        return super().event(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = self._theme
        if theme is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        enabled = self.isEnabled()
        hot = enabled and (self.underMouse() or self._dragging or self.hasFocus())
        inset = 5.0 if enabled else 15.0
        pill = QRectF(self._grip - 3, inset, 6, self.height() - 2 * inset)
        if enabled and self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.text, 2))
            painter.drawRoundedRect(pill.adjusted(-3, -3.5, 3, 3.5), 6, 6)
        painter.setPen(QPen(QColor(0, 0, 0, 110), 1))
        painter.setBrush(QColor(255, 255, 255, 255 if enabled else 130))
        painter.drawRoundedRect(pill, 3, 3)
        if hot:
            painter.setPen(QPen(QColor(0, 0, 0, 140), 1.2))
            center = pill.center()
            for offset in (-1.2, 1.2):
                painter.drawLine(center + QPointF(offset, -5), center + QPointF(offset, 5))

    def _end_drag(self) -> None:
        self._dragging = False
        self.setSliderDown(False)
        self.look_changed.emit()
