"""Two splits of a running model on the same question: asked, changed over, asked again, and set side by side."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QInputDialog

from gui.chat.book import TITLE_LENGTH
from gui.session import Phase

if TYPE_CHECKING:
    from gui.chat.conversation import Exchange
    from gui.window import Window

DEFAULT_QUESTION = "Describe the sea in about a hundred words."
_SEED = 1
"""A random answer is to be the same twice."""


class Step(Enum):
    """How far a comparison is."""

    NONE = "none"
    FIRST = "first answer"
    CHANGE = "change of the split"
    SECOND = "second answer"


class Comparison(QObject):
    """At most one. What interrupts it ends it; what was answered stays in its chat."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        self._dialog: QInputDialog | None = None
        self.step = Step.NONE
        self._question = ""
        self._request = ""
        self._first: Exchange | None = None
        window.chat.ended.connect(self._on_ended)

    def open(self) -> None:
        """Ask for the question."""
        if self._dialog is not None or self.step is not Step.NONE:
            return
        dialog = QInputDialog(self._window)
        dialog.setObjectName("compare_dialog")
        dialog.setWindowTitle("Compare Two Splits")
        dialog.setLabelText("Both splits answer this, the one that runs first; then the model runs with the other:")
        dialog.setOption(QInputDialog.InputDialogOption.UsePlainTextEditForTextInput)
        exchanges = self._window.chat.exchanges
        dialog.setTextValue(exchanges[-1].question if exchanges else DEFAULT_QUESTION)
        dialog.setOkButtonText("Compare")
        dialog.textValueSelected.connect(self.run)
        dialog.finished.connect(self._on_dialog_closed)
        self._dialog = dialog
        dialog.open()

    @Slot(str)
    def run(self, question: str) -> None:
        """Begin, if there is another split to compare with."""
        chat, store = self._window.chat, self._window.store
        if not question.strip() or store.pending is None or self.step is not Step.NONE:
            return
        self._window.deck.show_pane("chat")
        self._question = question.strip()
        settings = chat.book.shown.settings
        seed = _SEED if settings.seed is None else settings.seed
        chat.begin_named(f"Comparison: {self._question}"[:TITLE_LENGTH], replace(settings, seed=seed))
        self.step = Step.FIRST
        self._request = chat.ask(self._question, afresh=True)

    @Slot(str)
    def _on_ended(self, request_id: str) -> None:
        if request_id != self._request or self.step is Step.NONE:
            return
        exchange = self._window.chat.book.find(request_id)
        if exchange is None or exchange.finished is None or exchange.finished.finish_reason == "cancelled":
            self.step = Step.NONE
        elif self.step is Step.FIRST:
            self._first = exchange
            self.step = Step.CHANGE
            self._window.desk.apply()
        elif self.step is Step.SECOND:
            self.step = Step.NONE
            assert self._first is not None  # it came before
            self._window.chat.remark(request_id, compared_words(self._first, exchange))

    def follow(self) -> None:
        """The session may have changed."""
        session = self._window.store.session
        if self.step is Step.NONE:
            return
        if session.phase is not Phase.RUNNING:
            self.step = Step.NONE
        elif self.step is Step.CHANGE and session.outcome is not None and session.can_change:
            self.step = Step.SECOND
            self._request = self._window.chat.ask(self._question, afresh=True)
        elif self.step is Step.CHANGE and session.can_change:
            self.step = Step.NONE  # the change was refused

    @Slot()
    def _on_dialog_closed(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None


def compared_words(first: Exchange, second: Exchange) -> str:
    """``12 % faster than 5 | 18 | 7, same text``."""
    assert first.finished is not None
    assert second.finished is not None  # only whole answers are compared
    before, after = first.finished.decode_tokens_per_second, second.finished.decode_tokens_per_second
    text = "same text" if first.answer == second.answer else "other text"
    if before <= 0 or after <= 0:
        return f"{text} as on {first.split}"
    gain = after / before - 1
    speed = f"{abs(gain):.0%} {'faster' if gain >= 0 else 'slower'} than on {first.split}"
    return f"{speed}, {text}"
