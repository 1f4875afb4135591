"""The chat pane: the turns so far, and the box to write the next."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QFrame, QPushButton, QScrollArea, QVBoxLayout, QWidget

from gui.chat.composer import Composer
from gui.chat.conversation import Exchange, messages_for
from gui.chat.turns import Answer, Question
from gui.icons import pixmap
from gui.theme import sized_font
from gui.widgets.panel import Panel
from runtime.cluster.messages import Chat, Finished, Rejected, Text

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from gui.theme import Theme

ANSWERING = "The model is answering"
_NEAR_BOTTOM = 6


class ChatPane(Panel):
    """Keeps the text of a chat whatever becomes of the session.

    Signals:
        asked: A :class:`runtime.cluster.messages.Chat` to send.
        cancel_wanted: The request id of the answer to stop.
    """

    asked = Signal(object)
    cancel_wanted = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("Chat", theme, parent)
        self.setObjectName("chat_pane")
        self.setMinimumSize(320, 182)
        self._exchanges: list[Exchange] = []
        self._answers: list[Answer] = []
        self._blocked: str | None = "Start the model to chat"
        self._new = QPushButton("New Chat")
        self._new.setObjectName("chat_new")
        self._new.setProperty("quiet", True)
        self._new.setFlat(True)
        self._new.clicked.connect(self.clear)
        self.title_row.addWidget(self._new)
        self._turns = _Turns(theme)
        self.body.addWidget(self._turns, 1)
        self.composer = Composer(theme)
        self.composer.submitted.connect(self._on_submitted)
        self.composer.stop_wanted.connect(self._on_stop_wanted)
        self.body.addWidget(self.composer)
        self.set_theme(theme)
        self._sync()

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return tuple(self._exchanges)

    @property
    def answers(self) -> tuple[Answer, ...]:
        return tuple(self._answers)

    @property
    def answering(self) -> bool:
        return bool(self._exchanges) and self._exchanges[-1].open

    def set_blocked(self, reason: str | None) -> None:
        """Why no question can be sent now, or None."""
        if reason != self._blocked:
            self._blocked = reason
            self._sync()

    def receive(self, message: Text | Finished | Rejected) -> None:
        """More of an answer, or its end. Answers of a chat that was cleared are nobody's."""
        for index, exchange in enumerate(self._exchanges):
            if exchange.request_id == message.request_id:
                self._show(index, exchange.received(message))

    def session_over(self, reason: str) -> None:
        """The session ended; an answer that was under way says why, and keeps its text."""
        for index, exchange in enumerate(self._exchanges):
            if exchange.open:
                self._show(index, exchange.failed(reason))

    def clear(self) -> None:
        """Begin a new chat."""
        self._on_stop_wanted()
        self._exchanges.clear()
        self._answers.clear()
        self._turns.clear()
        self._sync()
        self.composer.box.setFocus()

    def focus_input(self) -> None:
        """Let the person write."""
        self.composer.box.setFocus()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._turns.set_theme(theme)
        self.composer.set_theme(theme)

    def _on_submitted(self, question: str) -> None:
        chat = Chat(uuid4().hex, messages_for(self._exchanges, question))
        self._exchanges.append(Exchange(chat.request_id, question))
        answer = Answer(self.theme)
        self._answers.append(answer)
        self._turns.add(Question(question, self.theme), answer)
        answer.show_exchange(self._exchanges[-1])
        self._sync()
        self.asked.emit(chat)

    def _on_stop_wanted(self) -> None:
        if self.answering:
            self.cancel_wanted.emit(self._exchanges[-1].request_id)

    def _show(self, index: int, exchange: Exchange) -> None:
        self._exchanges[index] = exchange
        self._answers[index].show_exchange(exchange)
        if not exchange.open:
            self._sync()

    def _sync(self) -> None:
        self.composer.set_state(self._blocked, answering=self.answering)
        self._new.setEnabled(bool(self._exchanges))
        self._new.setToolTip("Forget this chat and begin another" if self._exchanges else "This chat is still empty")
        self._turns.say("Once the model runs, you can talk to it here" if self._blocked else None)


class _Turns(QScrollArea):
    """The list of turns. It follows the end of the text only while the end is in view."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._follow = True
        self._words = ""
        self.setObjectName("chat_turns")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list = QWidget()
        self._column = QVBoxLayout(self._list)
        self._column.setContentsMargins(14, 6, 14, 6)
        self._column.setSpacing(14)
        self._column.addStretch(1)
        self.setWidget(self._list)
        self._list.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._on_scrolled)
        bar.rangeChanged.connect(self._on_grown)
        self._jump = QPushButton("Newest", self)
        self._jump.setObjectName("chat_newest")
        self._jump.setToolTip("Go to the end and follow it")
        self._jump.clicked.connect(self.to_end)
        self._jump.hide()

    def add(self, *turns: QWidget) -> None:
        """Add turns at the end, and go there: the person has just written."""
        for turn in turns:
            self._column.addWidget(turn)
        self.to_end()
        self.viewport().update()

    def clear(self) -> None:
        """Remove all turns."""
        while self._column.count() > 1:
            item = self._column.takeAt(1)
            widget = item.widget() if item else None
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self.viewport().update()

    def say(self, words: str | None) -> None:
        """What is written in the middle while there are no turns."""
        self._words = words or "Ask the model something"
        self.viewport().update()

    def to_end(self) -> None:
        """Show the end and stay there."""
        self._follow = True
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())
        self._jump.hide()

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        for index in range(1, self._column.count()):
            item = self._column.itemAt(index)
            widget = item.widget() if item else None
            if isinstance(widget, Question | Answer):
                widget.set_theme(theme)
        self.viewport().update()

    def _on_scrolled(self, value: int) -> None:
        self._follow = value >= self.verticalScrollBar().maximum() - _NEAR_BOTTOM
        self._jump.setVisible(not self._follow)

    def _on_grown(self, _low: int, high: int) -> None:
        if self._follow:
            self.verticalScrollBar().setValue(high)
            self._jump.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        size = self._jump.sizeHint()
        self._jump.setGeometry(
            (self.width() - size.width()) // 2, self.height() - size.height() - 6, size.width(), size.height()
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._column.count() > 1:
            return
        painter = QPainter(self.viewport())
        middle = self.viewport().rect().center()
        picture = pixmap("chat", self._theme.faint, 28, self.devicePixelRatioF())
        painter.drawPixmap(middle.x() - 14, middle.y() - 36, picture)
        painter.setFont(sized_font(12))
        painter.setPen(self._theme.dim)
        box = QRectF(16, middle.y(), self.viewport().width() - 32, 40)
        flags = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
        painter.drawText(box, flags, self._words)
