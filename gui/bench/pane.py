"""The benchmark pane: what to measure, how far it is, and the table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QStackedWidget

from gui.bench.form import BenchForm
from gui.bench.table import BenchTable
from gui.theme import sized_font
from gui.widgets.buttons import quiet_button, say_done
from gui.widgets.hint import Hint
from gui.widgets.labels import ElidedLabel, set_ink
from gui.widgets.panel import Panel
from runtime.bench.table import csv_lines, markdown_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gui.theme import Theme
    from runtime.bench.table import Measured

READY = "How fast the model is where it runs appears here: press Measure."
NO_MODEL = "Start the model to measure it"
_FORMS: dict[str, Callable[[Sequence[Measured]], str]] = {
    "Markdown": lambda rows: "\n".join(markdown_lines(rows)),
    "CSV": lambda rows: "\n".join(csv_lines(rows)),
    "JSON": lambda rows: msgspec.json.encode(rows).decode(),
}


class BenchPane(Panel):
    """Says what is wanted; :class:`gui.bench.keeper.BenchKeeper` sees to it.

    Signals:
        run_wanted: ``(BenchOrder, comparison)``: measure, and with ``even`` or ``shown`` another split after it.
        cancel_wanted: Measure no more.
    """

    run_wanted = Signal(object, str)
    cancel_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__("Benchmark", theme)
        self.setObjectName("bench_pane")
        self.setMinimumWidth(440)
        self._blocked: str | None = NO_MODEL
        self._context_tokens = 0
        self._unlike: Mapping[str, str] = {}
        self._busy = False
        self._is_bad = False
        self._says_reason = False
        self.copy = quiet_button("Copy", "bench_copy", "")
        menu = QMenu(self.copy)
        for name in _FORMS:
            menu.addAction(f"As {name}").triggered.connect(partial(self.copy_as, name))
        self.copy.setMenu(menu)
        self.clear = quiet_button("Clear", "bench_clear", "")
        self.clear.clicked.connect(self._on_clear)
        self.form = BenchForm(theme)
        for widget in (self.form.comparison, self.copy, self.clear):
            self.title_row.addWidget(widget)
        self.form.changed.connect(self._sync)
        self.form.submitted.connect(self._on_submitted)
        self.run = QPushButton("Measure")
        self.run.setObjectName("bench_run")
        self.run.setProperty("small", True)
        self.run.setFont(sized_font(12))
        self.run.setFixedHeight(26)
        self.run.clicked.connect(self._on_run)
        row = QHBoxLayout()
        row.setContentsMargins(14, 0, 12, 0)
        row.addWidget(self.form)
        row.addStretch(1)
        row.addWidget(self.run)
        self.body.addLayout(row)
        self.table = BenchTable(theme)
        self._hint = Hint("speed", theme)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._hint)
        self._stack.addWidget(self.table)
        middle = QHBoxLayout()
        middle.setContentsMargins(8, 0, 4, 0)
        middle.addWidget(self._stack)
        self.body.addLayout(middle, 1)
        self.words = ElidedLabel("bench_words", 12)
        foot = QHBoxLayout()
        foot.setContentsMargins(14, 0, 14, 7)
        foot.addWidget(self.words)
        self.body.addLayout(foot)
        self.setFocusProxy(self.form)
        self.set_theme(theme)
        self.say("")
        self._sync()

    # From the keeper ----------------------------------------------------------------------------------------------

    def show_state(self, blocked: str | None, context_tokens: int, unlike: Mapping[str, str], *, busy: bool) -> None:
        """Why nothing can be measured now, or None; the plan's context; why which comparisons cannot be."""
        state = (blocked, context_tokens, unlike, busy)
        if state != (self._blocked, self._context_tokens, self._unlike, self._busy):
            self._blocked, self._context_tokens, self._unlike, self._busy = state
            self._sync()

    def say(self, words: str, *, bad: bool = False) -> None:
        """How far it is, or how it ended."""
        self._is_bad, self._says_reason = bad, False
        self.words.setText(words)
        self.words.setVisible(bool(words))
        self.words.setAccessibleName(words)
        self._ink()

    def add_row(self, row: Measured) -> None:
        """One more row was measured."""
        self.table.show_rows((*self.table.rows, row))
        self._sync()

    def copy_as(self, form: str) -> None:
        """Copy the table as ``Markdown``, ``CSV`` or ``JSON``."""
        QGuiApplication.clipboard().setText(_FORMS[form](self.table.rows))
        say_done(self.copy)

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.form.set_theme(theme)
        self.table.set_theme(theme)
        self._hint.set_theme(theme)
        self._ink()

    # Inside -------------------------------------------------------------------------------------------------------

    def _reason(self) -> str | None:
        """Why nothing can be measured as it is."""
        order = self.form.order()
        if self._blocked is not None:
            return self._blocked
        if isinstance(order, str):
            return order
        return order.too_long(self._context_tokens) or self._unlike.get(self.form.compared)

    @Slot()
    def _sync(self) -> None:
        rows, reason = self.table.rows, None if self._busy else self._reason()
        self.run.setText("Cancel" if self._busy else "Measure")
        self.run.setEnabled(reason is None)
        self.run.setToolTip(reason or ("Measure no more" if self._busy else "Ask the model, and keep the time"))
        self.run.setAccessibleDescription(self.run.toolTip())
        self.form.set_locked(locked=self._busy)
        self._hint.say(READY if self._blocked is None else f"{self._blocked}.")
        self._stack.setCurrentWidget(self.table if rows else self._hint)
        nothing = "Nothing is measured yet"
        self.copy.setEnabled(bool(rows))
        self.copy.setToolTip("Copy the table as Markdown, CSV or JSON" if rows else nothing)
        self.clear.setEnabled(bool(rows) and not self._busy)
        self.clear.setToolTip(nothing if not rows else "It is being measured" if self._busy else "Empty the table")
        if self._blocked is None and (reason or self._says_reason):
            self.say(f"{reason}." if reason else "", bad=reason is not None)
            self._says_reason = reason is not None

    def _ink(self) -> None:
        set_ink(self.words, self.theme.bad if self._is_bad else self.theme.dim)

    @Slot()
    def _on_run(self) -> None:
        order = self.form.order()
        if self._busy:
            self.cancel_wanted.emit()
        elif not isinstance(order, str):
            self.run_wanted.emit(order, self.form.compared)

    @Slot()
    def _on_submitted(self) -> None:
        if self.run.isEnabled() and not self._busy:
            self._on_run()

    @Slot()
    def _on_clear(self) -> None:
        self.table.show_rows(())
        self.say("")
        self._sync()
