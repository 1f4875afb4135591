"""What the model answers: its reasoning, folded, its text, and beneath it what was measured or went wrong."""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gui.chat.conversation import Exchange, footer_words
from gui.chat.prose import Prose
from gui.chat.reasoning import Spoken, spoken
from gui.formatting import count_words
from gui.widgets.buttons import quiet_button
from gui.widgets.labels import ElidedLabel, label, set_ink

if TYPE_CHECKING:
    from gui.theme import Theme

_SHORTEST_PAUSE_MS, _LONGEST_PAUSE_MS = 90, 1000
_PAUSE_TIMES = 32
"""Writing takes at most a 32nd of a core, with layout and painting, on however large a screen."""
_PAINTED_MS = 20
"""Until then it is painted."""
WAITING = "Waiting for the first token…"
_FOOTER_TIP = "TTFT: time from sending the question to the first token of the answer."


class Answer(QWidget):
    """Over the whole width.

    Signals:
        again_wanted: The same question shall be answered anew.
    """

    again_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown = Exchange("", "")
        self._written = Spoken("", "", thinking=False)
        self._writer = QTimer(self)
        self._writer.setSingleShot(True)
        self._writer.timeout.connect(self._write)
        self._began_cpu_seconds = 0.0
        self._painted = QTimer(self)
        self._painted.setSingleShot(True)
        self._painted.setInterval(_PAINTED_MS)
        self._painted.timeout.connect(self._pause)
        self.fold = quiet_button("", "reasoning_fold", "Show or hide what the model thought before it answered")
        self.fold.setCheckable(True)
        self.fold.toggled.connect(self._on_fold)
        self._thought = Prose(theme)
        self._thought.setObjectName("reasoning_text")
        self._thought.hide()
        self._prose = Prose(theme)
        self._prose.setObjectName("answer_text")
        self._error = label("answer_error", 12, wrap=True)
        self._error.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._footer = ElidedLabel("answer_footer", 11)
        self._footer.setAccessibleDescription(_FOOTER_TIP)
        self.copy = quiet_button("Copy", "copy_answer", "Copy the answer as Markdown")
        self.copy.clicked.connect(self._on_copy)
        self.again = quiet_button("Regenerate", "regenerate", "Ask the same question again; this answer is replaced")
        self.again.clicked.connect(self.again_wanted)
        self._foot = QWidget()
        below = QHBoxLayout(self._foot)
        below.setContentsMargins(0, 0, 0, 0)
        below.setSpacing(2)
        below.addWidget(self._footer, 1)
        below.addWidget(self.copy)
        below.addWidget(self.again)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(4)
        box.addWidget(self.fold, 0, Qt.AlignmentFlag.AlignLeft)
        for part in (self._thought, self._prose, self._error, self._foot):
            box.addWidget(part)
        self.setObjectName("answer")
        self.set_theme(theme)

    @property
    def text(self) -> str:
        """What is on the screen, without Markdown's marks."""
        return self._prose.toPlainText()

    @property
    def reasoning(self) -> str:
        """What was thought, folded or not."""
        return self._thought.toPlainText()

    @property
    def footer(self) -> str:
        return self._footer.text()

    @property
    def error(self) -> str:
        return self._error.text()

    def show_exchange(self, exchange: Exchange, *, newest: bool = True) -> None:
        """Show more of the same answer. Only the ``newest`` one of a chat can be asked for again."""
        self._shown = exchange
        if not exchange.open or not self._writer.isActive():
            self._write()
        self._error.setText(exchange.error or "")
        self._error.setVisible(exchange.error is not None)
        waiting = exchange.pause or ("" if exchange.answer else WAITING)
        footer = waiting if exchange.open else footer_words(exchange)
        self._footer.setText(footer)
        self.copy.setVisible(not exchange.open and bool(self._written.answer))
        self.show_newest(newest=newest)
        self._foot.setVisible(bool(footer) or not exchange.open)
        if not exchange.open:
            self.setAccessibleName(f"Model: {self.text} {footer} {exchange.error or ''}".strip())

    def show_newest(self, *, newest: bool) -> None:
        """Whether this is the last answer of its chat."""
        self.again.setVisible(newest and not self._shown.open)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self._prose.set_theme(theme, self._written.answer)
        self._thought.set_theme(theme, self._written.reasoning)
        set_ink(self._thought, theme.dim)
        set_ink(self._error, theme.bad)
        set_ink(self._footer, theme.dim)

    def _write(self) -> None:
        """Write what came, and no more before it is painted and has paused in proportion."""
        now, before = spoken(self._shown.answer), self._written
        if now == before:
            self._prose.setVisible(bool(now.answer))
            self.fold.setVisible(bool(now.reasoning))
            return
        self._began_cpu_seconds = thread_time()
        self._written = now
        _write_more(self._prose, before.answer, now.answer)
        _write_more(self._thought, before.reasoning, now.reasoning)
        self._prose.setVisible(bool(now.answer))
        self._name_fold()
        self._writer.start(_LONGEST_PAUSE_MS)
        self._painted.start()

    @Slot()
    def _pause(self) -> None:
        """Once layout and painting are done."""
        pause_ms = round((thread_time() - self._began_cpu_seconds) * 1000 * _PAUSE_TIMES)
        self._writer.start(min(max(pause_ms, _SHORTEST_PAUSE_MS), _LONGEST_PAUSE_MS) - _PAINTED_MS)

    def _name_fold(self) -> None:
        words = len(self._written.reasoning.split())
        self.fold.setVisible(bool(self._written.reasoning))
        mark = "▾" if self.fold.isChecked() else "▸"
        state = "Thinking…" if self._written.thinking and self._shown.open else "Reasoning"
        self.fold.setText(f"{mark} {state} {count_words(words, 'word')}")

    @Slot(bool)
    def _on_fold(self, unfolded: bool) -> None:
        self._thought.setVisible(unfolded)
        self._name_fold()

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self._written.answer)


def _write_more(prose: Prose, before: str, now: str) -> None:
    if now.startswith(before):
        if len(now) > len(before):
            prose.append_markdown(now[len(before) :])
    else:  # what was taken for the answer was reasoning
        prose.set_markdown(now)
