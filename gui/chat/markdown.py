"""Markdown into a text document, block by block while it streams.

markdown-it-py parses, this module writes its tokens with a cursor. HTML stays text, and images become the words of
their description: what a model says never loads a file or an address.

Qt's own Markdown reader is not used because inserting piecewise with it drops the format of each piece's first block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from PySide6.QtGui import QTextBlockFormat, QTextCursor

from gui.chat.writer import Writer

if TYPE_CHECKING:
    from PySide6.QtGui import QTextDocument

    from gui.theme import Theme

_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


class StreamedMarkdown:
    """A document that Markdown is appended to. A complete block is written once; only the last is written again."""

    def __init__(self, document: QTextDocument, theme: Theme) -> None:
        self._document = document
        self._writer = Writer(theme)
        self._tail = ""
        self._stable_position = 0
        self._stable_fresh = True
        self._stable_format = QTextBlockFormat()

    def append(self, text: str) -> None:
        """Add text; the document then shows everything so far."""
        self._tail += text.replace("\r\n", "\n").replace("\r", "\n")
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        cursor.setPosition(self._stable_position)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        if cursor.block().length() == 1:
            cursor.setBlockFormat(self._stable_format)  # an empty block takes over the format of what was behind it
        self._writer.fresh = self._stable_fresh
        tokens = _PARSER.parse(self._tail)
        starts = [index for index, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0 and token.map]
        last = starts[-1] if starts else 0
        lines = self._tail.split("\n")
        rest = "\n".join(lines[(tokens[last].map or [0])[0] :]) if starts else ""
        # A number alone may yet become the next item of the list before it.
        if len(starts) > 1 and not rest.strip().isdecimal():
            self._writer.write(cursor, tokens[:last])
            self._tail = rest
            self._stable_position = cursor.position()
            self._stable_fresh = self._writer.fresh
            self._stable_format = cursor.blockFormat()
            tokens = tokens[last:]
        self._writer.write(cursor, tokens)
        cursor.endEditBlock()


def write_markdown(document: QTextDocument, text: str, theme: Theme) -> None:
    """Replace what a document shows by ``text``."""
    document.clear()
    StreamedMarkdown(document, theme).append(text)
