"""The strip under the cards: predicted speeds, the context, and what helps when a plan does not fit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from gui.formatting import context_words
from gui.server_line import ServerLine
from gui.split.strip_view import StripView
from gui.theme import sized_font
from gui.widgets.labels import ElidedLabel, label, set_ink
from gui.widgets.pop_up import PopUp

if TYPE_CHECKING:
    from gui.theme import Theme

_FIGURES = 4
_BUTTON_HEIGHT = 24


class PlanStrip(QWidget):
    """Shows a :class:`StripView`.

    Signals:
        apply_wanted: The running session shall go over to the split that is shown.
        revert_wanted: The split that runs shall be shown again.
        offer_wanted: The groups that the planner names shall be made.
        rebalance_wanted: The split that follows from what was measured shall be shown.
        compare_wanted: Both splits shall answer the same question.
        context_wanted: So many tokens were chosen.
        change_wanted: A :class:`runtime.planning.plan.Change` was clicked.
        node_wanted: The node with this id is to be put back in.
    """

    apply_wanted = Signal()
    revert_wanted = Signal()
    rebalance_wanted = Signal()
    offer_wanted = Signal()
    compare_wanted = Signal()
    context_wanted = Signal(int)
    change_wanted = Signal(object)
    node_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._view = StripView()
        self.setObjectName("plan_strip")
        self.setAccessibleName("Predicted speed and what helps")
        self._figures: list[tuple[QLabel, QLabel]] = []
        upper = QHBoxLayout()
        upper.setSpacing(6)
        for index in range(_FIGURES):
            what, how_much = label(f"figure_name_{index}", 12), label(f"figure_{index}", 12, QFont.Weight.DemiBold)
            self._figures.append((what, how_much))
            upper.addWidget(what)
            upper.addWidget(how_much)
            upper.addSpacing(12)
        self.server = ServerLine(theme)
        upper.addStretch(1)
        upper.addWidget(self.server, 100)
        upper.addSpacing(10)
        self._context_name = label("context_name", 12)
        self._context_name.setText("Context")
        self.context = PopUp(theme)
        self.context.setObjectName("context")
        self.context.setAccessibleName("Context in tokens")
        self.context.setFont(sized_font(12))
        self.context.setFixedHeight(_BUTTON_HEIGHT)
        self.context.activated.connect(self._on_context)
        upper.addWidget(self._context_name)
        upper.addWidget(self.context)
        self._offers = QHBoxLayout()
        self._offers.setSpacing(8)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 0, 24, 0)
        column.setSpacing(2)
        column.addLayout(upper)
        column.addLayout(self._offers)
        self.buttons: list[QPushButton] = []
        self._words: list[QLabel] = []
        self.hide()

    @property
    def view(self) -> StripView:
        return self._view

    def show_view(self, view: StripView) -> None:
        """Show another state; a drag changes figures alone, so that nothing flickers."""
        before, self._view = self._view, view
        if view == before:
            return
        self.setVisible(bool(view.contexts))
        self.setToolTip(view.tooltip)
        for index, (what, how_much) in enumerate(self._figures):
            name, figure = view.speeds[index] if index < len(view.speeds) else ("", "")
            what.setText(name)
            how_much.setText(figure)
        if (view.contexts, view.context_tokens) != (before.contexts, before.context_tokens):
            self.context.clear()
            for tokens in view.contexts:
                self.context.addItem(context_words(tokens), tokens)
            self.context.setCurrentIndex(self.context.findData(view.context_tokens))
        self.context.setEnabled(not view.locked)
        self.context.setToolTip(
            "Stop to change the context" if view.locked else "Tokens of prompt and answer together to have room for"
        )
        if _offers(view) != _offers(before):
            self._show_offers()
        self._ink()

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self.context.set_theme(theme)
        self.server.set_theme(theme)
        self._ink()

    def _show_offers(self) -> None:
        while (item := self._offers.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self.buttons, self._words = [], []
        view = self._view
        if view.edited:
            self._show_pending(view)
        if view.changes:
            self._say("What helps:")
        for change in view.changes:
            if change.kind == "node":
                self._say(("or " if self.buttons else "") + change.words)
            else:
                self._offer(change.words, f"change_{change.kind}").clicked.connect(
                    partial(self.change_wanted.emit, change)
                )
        for node in view.unused[:2]:
            self._say(node.reason)
            self._offer("Put back in", f"put_back_{node.node_id}").clicked.connect(
                partial(self.node_wanted.emit, node.node_id)
            )
        if len(view.unused) > 2:
            self._say(f"and {len(view.unused) - 2} more not used")
        self._show_faster(view)
        if view.warning:
            self._say(view.warning)
        if self._words or self.buttons:
            self._offers.addStretch(1)

    def _show_faster(self, view: StripView) -> None:
        """What would be faster: other groups, or another split by what was measured."""
        if view.offer_words:
            self._say(view.offer_words)
            share = self._offer("Share Layers", "offer_button")
            share.setToolTip("Let these nodes share every layer of a stage")
            share.clicked.connect(self.offer_wanted)
        if view.rebalance_words:
            self._say(view.rebalance_words)
            rebalance = self._offer("Rebalance", "rebalance_button")
            rebalance.setToolTip("Show this split; the session goes over to it when you apply it")
            rebalance.clicked.connect(self.rebalance_wanted)

    def _show_pending(self, view: StripView) -> None:
        """A split that is not the one that runs: apply it, compare it, or go back."""
        if view.apply_words:
            apply = self._offer("Apply", "apply_button")
            apply.setProperty("primary", True)
            apply.setToolTip(f"Go over to this split: {view.apply_words}")
            apply.setAccessibleDescription(view.apply_words)
            apply.clicked.connect(self.apply_wanted)
            self._say(view.apply_words)
            compare = self._offer("Compare…", "compare_button")
            compare.setToolTip("Ask both splits the same question, one after the other")
            compare.clicked.connect(self.compare_wanted)
        revert = self._offer("Back to What Runs", "revert_button")
        revert.setToolTip("Show the split that runs")
        revert.clicked.connect(self.revert_wanted)

    def _say(self, text: str) -> None:
        words = ElidedLabel(f"offer_words_{len(self._words)}", 12)
        words.setText(text)
        words.setMaximumWidth(words.sizeHint().width())
        self._words.append(words)
        self._offers.addWidget(words, 100)  # what is left over is for the end of the row

    def _offer(self, text: str, name: str) -> QPushButton:
        button = QPushButton(text[:1].upper() + text[1:])
        button.setObjectName(name)
        button.setFont(sized_font(12))
        button.setProperty("small", True)
        button.setFixedHeight(_BUTTON_HEIGHT)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.buttons.append(button)
        self._offers.addWidget(button)
        return button

    def _on_context(self, index: int) -> None:
        self.context_wanted.emit(int(self.context.itemData(index)))

    def _ink(self) -> None:
        theme = self._theme
        for what, how_much in self._figures:
            set_ink(what, theme.dim)
            set_ink(how_much, theme.text)
        set_ink(self._context_name, theme.dim)
        for words in self._words:
            set_ink(words, theme.warn if self._view.warning else theme.dim)


def _offers(view: StripView) -> tuple[object, ...]:
    return (
        view.changes,
        view.unused,
        view.warning,
        view.edited,
        view.apply_words,
        view.rebalance_words,
        view.offer_words,
    )
