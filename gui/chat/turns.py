"""The two kinds of turn in a chat: what the person said, and what the model answers."""

from __future__ import annotations

from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, QTimer
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gui.chat.conversation import Exchange, footer_words
from gui.chat.prose import Prose
from gui.widgets.labels import label, set_ink

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from gui.theme import Theme

_LONGEST_PAUSE_MS = 1000
"""However long a block has become, an answer moves at least this often."""
WAITING = "Waiting for the first token…"
_BUBBLE_SHARE = 0.82
"""A question takes at most this part of the width."""


class Question(QWidget):
    """A bubble on the right, as wide as its text."""

    def __init__(self, text: str, theme: Theme) -> None:
        super().__init__()
        self._text = text
        self._bubble = _Bubble(text, theme)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self._bubble)
        self.setObjectName("question")
        self.setAccessibleName(f"You: {text}")

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._bubble.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._bubble.fit(self.width() * _BUBBLE_SHARE)


class _Bubble(QWidget):
    def __init__(self, text: str, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._prose = Prose(theme)
        self._prose.setPlainText(text)
        box = QVBoxLayout(self)
        box.setContentsMargins(12, 8, 12, 8)
        box.addWidget(self._prose)

    def fit(self, limit: float) -> None:
        document = self._prose.document()
        document.setTextWidth(-1)
        ideal = ceil(document.idealWidth()) + 25
        self.setFixedWidth(max(min(ideal, int(limit)), 40))

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._prose.set_theme(theme, None)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.raised)
        painter.drawRoundedRect(QRectF(self.rect()), 12, 12)


class Answer(QWidget):
    """The model's text over the whole width, with what was measured, or went wrong, beneath it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown = Exchange("", "")
        self._unwritten = ""
        self._writer = QTimer(self)
        self._writer.setSingleShot(True)
        self._writer.timeout.connect(self._write)
        self._prose = Prose(theme)
        self._prose.setObjectName("answer_text")
        self._error = label("answer_error", 12, wrap=True)
        self._error.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._footer = label("answer_footer", 11)
        self._footer.setToolTip("TTFT: time from sending the question to the first token of the answer.")
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(4)
        box.addWidget(self._prose)
        box.addWidget(self._error)
        box.addWidget(self._footer)
        self.setObjectName("answer")
        self.set_theme(theme)

    @property
    def text(self) -> str:
        """What is on the screen, without Markdown's marks."""
        return self._prose.toPlainText()

    @property
    def footer(self) -> str:
        return self._footer.text()

    @property
    def error(self) -> str:
        return self._error.text()

    def show_exchange(self, exchange: Exchange) -> None:
        """Show more of the same answer."""
        self._unwritten += exchange.answer[len(self._shown.answer) :]
        self._shown = exchange
        if not exchange.open or not self._writer.isActive():
            self._write()
        self._prose.setVisible(bool(exchange.answer))
        self._error.setText(exchange.error or "")
        self._error.setVisible(exchange.error is not None)
        waiting = exchange.open and not exchange.answer
        footer = footer_words(exchange.finished) if exchange.finished else WAITING if waiting else ""
        self._footer.setText(footer)
        self._footer.setVisible(bool(footer))
        if not exchange.open:
            self.setAccessibleName(f"Model: {self.text} {footer} {exchange.error or ''}".strip())

    def _write(self) -> None:
        """Write what came; then wait twenty times as long as that took, so that it takes a twentieth of the time."""
        if not self._unwritten:
            return
        start = perf_counter()
        text, self._unwritten = self._unwritten, ""
        self._prose.append_markdown(text)
        self._writer.start(min(round((perf_counter() - start) * 20_000), _LONGEST_PAUSE_MS))

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self._unwritten = ""
        self._prose.set_theme(theme, self._shown.answer)
        set_ink(self._error, theme.bad)
        set_ink(self._footer, theme.dim)
        self.show_exchange(self._shown)
