"""Markdown into a text document, block by block while it streams.

markdown-it-py parses, this module writes its tokens with a cursor. HTML stays text, and images become the words of
their description: what a model says never loads a file or an address.

Qt's own Markdown reader is not used because inserting piecewise with it drops the format of each piece's first block.

Most of what streams is words within a paragraph, which no mark of before or after can change: they are appended as they
are, for a fifth of what parsing and writing the block again takes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from PySide6.QtGui import QTextBlockFormat, QTextCursor

from gui.chat.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token
    from PySide6.QtGui import QTextDocument

    from gui.theme import Theme

_PLAIN = re.compile(r"(?:[^\W_]|[ ,.?!'\"])+")
"""Letters, digits and what means nothing to Markdown within a line."""
_PLAIN_LINE_END = re.compile(r"(?:^|\n)[^\W\d_]{2}[^\n]*(?:[^\W_]|[ ,.?!'\"])\Z")
"""The line goes on: it began with a word, not with what could become a list, and no mark is the last that came."""
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
        self._ends_plain = False
        """Whether the document ends with words of a paragraph."""

    def append(self, text: str) -> None:
        """Add text; the document then shows everything so far."""
        cursor = QTextCursor(self._document)
        if self._ends_plain and _PLAIN.fullmatch(text) and _PLAIN_LINE_END.search(self._tail):
            # Spaces at the end of a line are not written, but those within it are.
            written = self._tail.rstrip(" ")
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText((self._tail + text).rstrip(" ")[len(written) :])
            self._tail += text
            return
        self._tail += text.replace("\r\n", "\n").replace("\r", "\n")
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
        # A line that is not over may yet belong to the paragraph before it, and a number alone to the list before it.
        is_apart = "\n" in rest or self._tail[: -len(rest)].endswith("\n\n")
        if len(starts) > 1 and is_apart and not rest.strip().isdecimal():
            self._writer.write(cursor, tokens[:last])
            self._tail = rest
            self._stable_position = cursor.position()
            self._stable_fresh = self._writer.fresh
            self._stable_format = cursor.blockFormat()
            tokens = tokens[last:]
        self._writer.write(cursor, tokens)
        cursor.endEditBlock()
        self._ends_plain = _ends_with_words(tokens)


def _ends_with_words(tokens: Sequence[Token]) -> bool:
    if not tokens or tokens[-1].type != "paragraph_close" or tokens[-1].level:
        return False
    children = tokens[-2].children or []
    return bool(children) and children[-1].type == "text"


def write_markdown(document: QTextDocument, text: str, theme: Theme) -> None:
    """Replace what a document shows by ``text``."""
    document.clear()
    StreamedMarkdown(document, theme).append(text)
