"""The chat pane: the chats, the turns of the one that is shown, and the box to write the next."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QMenu

from gui.chat.answer import Answer
from gui.chat.book import ChatBook, Conversation
from gui.chat.composer import Composer
from gui.chat.conversation import went_on_words
from gui.chat.question import Question
from gui.chat.settings_panel import SettingsPanel
from gui.chat.turns import Turns
from gui.widgets.buttons import quiet_button
from gui.widgets.panel import Panel
from runtime.cluster.messages import Answered

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QWidget

    from gui.chat.book import ChatSettings
    from gui.chat.conversation import Exchange
    from gui.session import Outcome
    from gui.theme import Theme
    from runtime.cluster.messages import Finished, Rejected, Text


class ChatPane(Panel):
    """Keeps the text of chats whatever becomes of the session.

    Signals:
        asked: A :class:`runtime.cluster.messages.Chat` to send.
        cancel_wanted: The request id of the answer to stop.
        ended: The request id of an answer that is over.
        kept: Something that should outlive the window changed: a question was asked, or an answer ended.
    """

    asked = Signal(object)
    cancel_wanted = Signal(str)
    ended = Signal(str)
    kept = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("Chat", theme, parent)
        self.setObjectName("chat_pane")
        self.setMinimumSize(320, 182)
        self.book = ChatBook()
        self._answers: list[Answer] = []
        self._blocked: str | None = "Start the model to chat"
        self._split = ""
        self._context_tokens = 0
        self._editing: int | None = None
        """The exchange that the next question replaces, with all that follows."""
        self.picker = quiet_button("Chats", "chat_picker", "Show another chat")
        self._menu = QMenu(self)
        self._menu.aboutToShow.connect(self._fill_menu)
        self.picker.setMenu(self._menu)
        self._new = quiet_button("New Chat", "chat_new", "")
        self._new.clicked.connect(self.new_chat)
        self.tune = quiet_button("Settings", "chat_tune", "System prompt and sampling of this chat")
        self.tune.setCheckable(True)
        for button in (self.picker, self.tune, self._new):
            self.title_row.addWidget(button)
        self.settings = SettingsPanel(theme)
        self.settings.changed.connect(self._on_settings)
        self.tune.toggled.connect(self.settings.setVisible)
        self.body.addWidget(self.settings)
        self._turns = Turns(theme)
        self.body.addWidget(self._turns, 1)
        self.composer = Composer(theme)
        self.composer.submitted.connect(self._on_submitted)
        self.composer.stop_wanted.connect(self.stop)
        self.composer.given_up.connect(self._stop_editing)
        self.body.addWidget(self.composer)
        self.setFocusProxy(self.composer.box)
        self.settings.show_settings(self.book.shown.settings)
        self.set_theme(theme)
        self._sync()

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return self.book.shown.exchanges

    @property
    def answers(self) -> tuple[Answer, ...]:
        return tuple(self._answers)

    @property
    def answering(self) -> bool:
        return self.book.shown.answering

    # From the window ----------------------------------------------------------------------------------------------

    def set_split(self, words: str, context_tokens: int) -> None:
        """Which split answers now, and how long a chat may become with it; 0 if nothing runs."""
        self._split = words
        if context_tokens != self._context_tokens:
            self._context_tokens = context_tokens
            self._sync()

    def set_blocked(self, reason: str | None) -> None:
        """Why no question can be sent now, or None."""
        if reason != self._blocked:
            self._blocked = reason
            self._sync()

    def receive(self, message: Text | Finished | Rejected | Answered) -> None:
        """More of an answer, or its end. Answers of a chat that was deleted are nobody's."""
        if isinstance(message, Answered):
            self.book.restore(message)
            self._rebuild()
            return
        found = self.book.received(message)
        if found is None:
            return
        place, index = found
        if place == self.book.place:
            self._show(index)
        if not self.book.conversations[place].exchanges[index].open:
            self.ended.emit(message.request_id)
            self.kept.emit()

    def session_over(self, reason: str) -> None:
        """The session ended; an answer that was under way says why, and keeps its text."""
        self._change_open(lambda exchange: exchange.failed(reason))
        self.kept.emit()

    def pause(self, why: str) -> None:
        """The session goes over to another split; open answers wait."""
        self._change_open(lambda exchange: exchange.paused(why))

    def go_on(self, outcome: Outcome | None) -> None:
        """It did, or nothing was changed (None)."""
        self._change_open(lambda exchange: exchange.went_on(went_on_words(outcome)))

    def show_book(self, book: ChatBook) -> None:
        """Show chats that were kept."""
        self.book = book
        self._rebuild()

    # What a person does -------------------------------------------------------------------------------------------

    def new_chat(self) -> None:
        """Begin a new chat, with the settings of this one; the others stay."""
        self.book.begin()
        self._rebuild()
        self.focus_input()

    def begin_named(self, name: str, settings: ChatSettings) -> None:
        """Begin a new chat with a name and settings of its own."""
        self.book.begin(settings, name)
        self._rebuild()

    def remark(self, request_id: str, words: str) -> None:
        """Say something under an answer."""
        place = self.book.change(request_id, lambda exchange: exchange.remarked(words))
        if place is not None and place[0] == self.book.place:
            self._show(place[1])

    def show_chat(self, place: int) -> None:
        """Show another chat."""
        self.book.show(place)
        self._rebuild()

    def delete_chat(self) -> None:
        """Forget this chat."""
        self.stop()
        self.book.delete()
        self._rebuild()
        self.kept.emit()

    def ask(self, question: str, *, after: int | None = None, afresh: bool = False) -> str:
        """Send a question, in the place of what comes from ``after`` on; returns its request id."""
        self.book.shown = self.book.shown.asked(question, self._split, after=after, afresh=afresh)
        request = self.book.shown.request()
        if after is None:
            self._add_turn(self.exchanges[-1])
        else:
            self._rebuild()
        self._sync()
        self.asked.emit(request)
        self.kept.emit()
        return request.request_id

    def stop(self) -> None:
        """Stop the answer."""
        if self.answering:
            self.cancel_wanted.emit(self.exchanges[-1].request_id)

    def regenerate(self) -> None:
        """Have the last question answered anew."""
        if self.exchanges and not self.answering and self._blocked is None:
            last = len(self.exchanges) - 1
            self.ask(self.exchanges[last].question, after=last)

    def edit(self, index: int) -> None:
        """Put a question into the box, to be asked in other words."""
        if not self.answering and index < len(self.exchanges):
            self._editing = index
            self.composer.edit(self.exchanges[index].question)

    def edit_last(self) -> None:
        """The same with the last one."""
        if self.exchanges:
            self.edit(len(self.exchanges) - 1)

    def focus_input(self) -> None:
        """Let the person write."""
        self.composer.box.setFocus()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._turns.set_theme(theme)
        self.settings.set_theme(theme)
        self.composer.set_theme(theme)

    @Slot(str)
    def _on_submitted(self, question: str) -> None:
        after, self._editing = self._editing, None
        self.ask(question, after=after)

    @Slot()
    def _stop_editing(self) -> None:
        self._editing = None

    @Slot(object)
    def _on_settings(self, settings: ChatSettings) -> None:
        shown = self.book.shown
        self.book.shown = Conversation(shown.exchanges, settings, shown.name)

    # Inside -------------------------------------------------------------------------------------------------------

    def _change_open(self, change: Callable[[Exchange], Exchange]) -> None:
        for index in self.book.change_open(change):
            self._show(index)

    def _add_turn(self, exchange: Exchange) -> None:
        index = len(self._answers)
        for answer in self._answers:
            answer.show_newest(newest=False)
        question, answer = Question(exchange.question, self.theme), Answer(self.theme)
        question.edit_wanted.connect(partial(self.edit, index))
        answer.again_wanted.connect(self.regenerate)
        self._answers.append(answer)
        self._turns.add(question, answer)
        answer.show_exchange(exchange)

    def _show(self, index: int) -> None:
        exchange = self.exchanges[index]
        self._answers[index].show_exchange(exchange, newest=index == len(self._answers) - 1)
        if exchange.open:
            self._show_used()
        else:
            self._sync()

    def _rebuild(self) -> None:
        """Show the chat from its beginning."""
        self._stop_editing()
        self._answers.clear()
        self._turns.clear()
        for exchange in self.exchanges:
            self._add_turn(exchange)
        self.settings.show_settings(self.book.shown.settings)
        self._sync()

    def _fill_menu(self) -> None:
        self._menu.clear()
        for place, conversation in enumerate(self.book.conversations):
            action = self._menu.addAction(conversation.title.replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(place == self.book.place)
            action.triggered.connect(partial(self.show_chat, place))
        self._menu.addSeparator()
        delete = self._menu.addAction("Delete This Chat")
        delete.setEnabled(bool(self.exchanges))
        delete.triggered.connect(self.delete_chat)

    def _show_used(self) -> None:
        self.composer.set_meter(self.book.shown.used_tokens, self._context_tokens)

    def _sync(self) -> None:
        self.composer.set_state(self._blocked, answering=self.answering)
        self._show_used()
        count = len(self.book.conversations)
        self.picker.setText(f"{count} Chats" if count > 1 else "Chats")
        self.picker.setVisible(count > 1 or bool(self.exchanges))
        self._new.setEnabled(bool(self.exchanges))
        self._new.setToolTip("Begin another chat; this one stays" if self.exchanges else "This chat is still empty")
        self._turns.say("Once the model runs, you can talk to it here" if self._blocked else None)
