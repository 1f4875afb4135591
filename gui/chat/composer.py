"""Where a person writes: a box that grows, a button that sends or stops, and a line that says what Enter would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPalette, QPen
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from gui.icons import icon
from gui.theme import ink_on
from gui.widgets.labels import ElidedLabel, set_ink
from gui.widgets.meter import Meter

if TYPE_CHECKING:
    from PySide6.QtGui import QFocusEvent, QKeyEvent, QPaintEvent

    from gui.theme import Theme

EDITING_HINT = "Enter asks anew and replaces what follows · Esc keeps it"
HINT = "Enter sends · Shift+Enter for a new line"
_MAX_LINES = 6


class Composer(QWidget):
    """The box is never disabled: a person may write while the model loads.

    Signals:
        submitted: The person wants to send this text, which may be sent.
        stop_wanted: The person wants the answer to stop.
        given_up: The person does not want to edit a question any more.
    """

    submitted = Signal(str)
    stop_wanted = Signal()
    given_up = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._blocked: str | None = None
        self._answering = False
        self._editing = False
        self.box = _Box()
        self.box.entered.connect(self._on_enter)
        self.box.escaped.connect(self._on_escape)
        self.box.focus_changed.connect(self.update)
        self.box.textChanged.connect(self._sync)
        self.button = QPushButton()
        self.button.setObjectName("chat_send")
        self.button.setProperty("primary", True)
        self.button.clicked.connect(self._on_button)
        self._hint = ElidedLabel("chat_hint", 11)
        self.meter = Meter("context_meter")
        self._frame = QHBoxLayout()
        self._frame.setContentsMargins(10, 6, 6, 6)
        self._frame.setSpacing(8)
        self._frame.addWidget(self.box, 1)
        self._frame.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 4, 12, 8)
        column.setSpacing(4)
        column.addLayout(self._frame)
        hint_row = QHBoxLayout()
        hint_row.setContentsMargins(3, 0, 3, 0)
        hint_row.addWidget(self._hint, 1)
        hint_row.addWidget(self.meter)
        column.addLayout(hint_row)
        self.set_theme(theme)

    @property
    def hint(self) -> str:
        return self._hint.text()

    def set_state(self, blocked: str | None, *, answering: bool) -> None:
        """``blocked`` says why nothing can be sent, or is None. While ``answering`` the button stops the answer."""
        self._blocked, self._answering = blocked, answering
        self._sync()

    def edit(self, text: str) -> None:
        """Let the person write an earlier question in other words."""
        self._editing = True
        self.box.setPlainText(text)
        self.box.selectAll()
        self.box.setFocus()
        self._sync()

    def set_meter(self, used: int, limit: int) -> None:
        """How much of the context the chat takes; without a limit there is no meter."""
        self.meter.show_tokens(used, limit)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self.meter.set_theme(theme)
        set_ink(self.box, theme.text)
        palette = self.box.palette()
        palette.setColor(QPalette.ColorRole.Base, Qt.GlobalColor.transparent)
        palette.setColor(QPalette.ColorRole.PlaceholderText, theme.dim)
        self.box.setPalette(palette)
        self._sync()
        self.update()

    def _sync(self) -> None:
        empty = not self.box.toPlainText().strip()
        reason = None if self._answering else self._blocked or ("Write something to send" if empty else None)
        self.button.setText("Stop" if self._answering else "Send")
        self.button.setAccessibleName("Stop the answer" if self._answering else "Send the message")
        self.button.setEnabled(reason is None)
        self.button.setToolTip(reason or ("Stop the answer" if self._answering else "Send the message (Enter)"))
        glyph = "stop" if self._answering else "send"
        self.button.setIcon(icon(glyph, ink_on(self._theme.accent), self._theme.dim))
        hint = EDITING_HINT if self._editing else HINT
        self._hint.setText(self._blocked or ("The answer can be stopped" if self._answering else hint))
        set_ink(self._hint, self._theme.dim)

    def _on_enter(self) -> None:
        text = self.box.toPlainText().strip()
        if text and self._blocked is None and not self._answering:
            self._editing = False
            self.box.clear()
            self.submitted.emit(text)

    def _on_escape(self) -> None:
        if self._editing:
            self._editing = False
            self.box.clear()
            self._sync()
            self.given_up.emit()

    def _on_button(self) -> None:
        if self._answering:
            self.stop_wanted.emit()
        else:
            self._on_enter()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        focused = self.box.hasFocus()
        painter.setBrush(self._theme.window)
        painter.setPen(QPen(self._theme.accent, 2) if focused else QPen(self._theme.line, 1))
        painter.drawRoundedRect(QRectF(self._frame.geometry()).adjusted(0.5, 0.5, -0.5, -0.5), 9, 9)


class _Box(QPlainTextEdit):
    """Grows with its text up to six lines. Enter is a signal, Shift+Enter a new line."""

    entered = Signal()
    escaped = Signal()
    focus_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("chat_input")
        self.setAccessibleName("Message to the model")
        self.setPlaceholderText("Ask the model something")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.viewport().setAutoFillBackground(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.document().setDocumentMargin(4)
        self.textChanged.connect(self._grow)
        self._grow()

    def sizeHint(self) -> QSize:
        return QSize(200, self.minimumHeight())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        plain = not event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and plain:
            self.entered.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit()

    def _grow(self) -> None:
        lines = min(max(int(self.document().size().height()), 1), _MAX_LINES)
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + 10)
