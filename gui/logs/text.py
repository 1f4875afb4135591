"""Shows entries of a log: with a colour where something is wrong, and from its end on while it is followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from gui.logs.lines import Level
from gui.theme import mono_font

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.logs.lines import Entry
    from gui.theme import Theme


class LogText(QPlainTextEdit):
    """Read-only; what a person has selected stays while entries are only added."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._entries: tuple[Entry, ...] = ()
        self.setObjectName("log_text")
        self.setAccessibleName("Log")
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFont(mono_font(11))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.document().setDocumentMargin(12)
        self.viewport().setAutoFillBackground(False)

    @property
    def wanted(self) -> str:
        """What is selected, or all."""
        selected = self.textCursor().selection().toPlainText()
        return selected or self.toPlainText()

    def show_entries(self, shown: Sequence[Entry], *, follow: bool) -> None:
        """Show others; if they only go on, the rest is added. Who has scrolled up stays there."""
        now = tuple(shown)
        if now == self._entries:
            return
        bar, known = self.verticalScrollBar(), len(self._entries)
        goes_on = known > 0 and now[:known] == self._entries
        was_at_end = bar.value() >= bar.maximum()
        if not goes_on:
            self.clear()
        self._write(now[known:] if goes_on else now)
        self._entries = now
        if follow and (was_at_end or not goes_on):
            self.to_end()

    def to_end(self) -> None:
        """Show the newest."""
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        shown, self._entries = self._entries, ()
        place = self.verticalScrollBar().value()
        self.show_entries(shown, follow=False)
        self.verticalScrollBar().setValue(place)

    def _write(self, added: Sequence[Entry]) -> None:
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.beginEditBlock()
        for entry in added:
            if not self.document().isEmpty():
                cursor.insertBlock()
            cursor.insertText(entry.shown, self._format(entry))
        cursor.endEditBlock()

    def _format(self, entry: Entry) -> QTextCharFormat:
        theme = self._theme
        result = QTextCharFormat()
        result.setForeground({Level.WARNING: theme.warn, Level.ERROR: theme.bad}.get(entry.level, theme.text))
        return result
