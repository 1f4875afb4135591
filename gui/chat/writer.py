"""Writes markdown-it-py's tokens into a text document with a cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtGui import (
    QFont,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextListFormat,
    QTextTableFormat,
)

from gui.chat.code import colored
from gui.theme import MONO_FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markdown_it.token import Token
    from PySide6.QtGui import QTextList

    from gui.theme import Theme

_CODE_PIXELS = 12
_HEADING_PIXELS = {1: 18, 2: 16, 3: 14}
_LINE_PERCENT = 124.0


@dataclass(slots=True)
class _OpenList:
    """A list that is being written; Qt makes it with its first item."""

    format: QTextListFormat
    made: QTextList | None = None


class Writer:
    """Writes tokens at a cursor that stands at the end of the document."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self.fresh = True
        """The block at the cursor is empty and waits to be used: at the start, and after a table or a code block."""
        self._lists: list[_OpenList] = []
        self._item_begins = False
        self._quotes = 0
        self._heading = 0
        self._rows: list[list[Token]] | None = None
        self._text = QTextCharFormat()
        self._text.setForeground(theme.text)
        self._code = QTextCharFormat(self._text)
        self._code.setFontFamilies(MONO_FAMILIES)
        self._code.setFontFixedPitch(True)
        self._code.setProperty(QTextFormat.Property.FontPixelSize, _CODE_PIXELS)

        self._handlers: dict[str, Callable[[QTextCursor, Token], None]] = {
            "paragraph_open": self._begin_paragraph,
            "heading_open": self._begin_heading,
            "heading_close": self._end_heading,
            "inline": self._take_inline,
            "bullet_list_open": self._begin_list,
            "ordered_list_open": self._begin_list,
            "bullet_list_close": self._end_list,
            "ordered_list_close": self._end_list,
            "list_item_open": self._begin_item,
            "blockquote_open": self._begin_quote,
            "blockquote_close": self._end_quote,
            "fence": self._write_code,
            "code_block": self._write_code,
            "table_open": self._begin_table,
            "tr_open": self._begin_row,
            "table_close": self._write_table,
            "hr": self._write_rule,
        }

    def write(self, cursor: QTextCursor, tokens: Sequence[Token]) -> None:
        """Write whole blocks."""
        for token in tokens:
            handler = self._handlers.get(token.type)
            if handler is not None:
                handler(cursor, token)

    def _begin_heading(self, cursor: QTextCursor, token: Token) -> None:
        self._heading = int(token.tag[1])
        self._begin_block(cursor, self._block_format(top=4 if self.fresh else 12, bottom=5))

    def _end_heading(self, _cursor: QTextCursor, _token: Token) -> None:
        self._heading = 0

    def _take_inline(self, cursor: QTextCursor, token: Token) -> None:
        if self._rows is not None:
            self._rows[-1].append(token)  # a cell: written when the size of the table is known
        else:
            self._write_inline(cursor, token.children or [])

    def _begin_list(self, _cursor: QTextCursor, token: Token) -> None:
        self._lists.append(_OpenList(self._list_format(token)))

    def _end_list(self, _cursor: QTextCursor, _token: Token) -> None:
        self._lists.pop()

    def _begin_item(self, _cursor: QTextCursor, _token: Token) -> None:
        self._item_begins = True

    def _begin_quote(self, _cursor: QTextCursor, _token: Token) -> None:
        self._quotes += 1

    def _end_quote(self, _cursor: QTextCursor, _token: Token) -> None:
        self._quotes -= 1

    def _begin_table(self, _cursor: QTextCursor, _token: Token) -> None:
        self._rows = []

    def _begin_row(self, _cursor: QTextCursor, _token: Token) -> None:
        assert self._rows is not None
        self._rows.append([])

    def _write_rule(self, cursor: QTextCursor, _token: Token) -> None:
        line = self._block_format(top=4, bottom=10)
        full = QTextLength(QTextLength.Type.PercentageLength, 100)
        line.setProperty(QTextFormat.Property.BlockTrailingHorizontalRulerWidth, full)
        self._begin_block(cursor, line)

    def _block_format(self, top: int = 0, bottom: int = 8) -> QTextBlockFormat:
        result = QTextBlockFormat()
        result.setTopMargin(top)
        result.setBottomMargin(bottom)
        result.setLineHeight(_LINE_PERCENT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        result.setLeftMargin(16 * self._quotes)
        return result

    def _begin_block(self, cursor: QTextCursor, block: QTextBlockFormat) -> None:
        if self.fresh:
            cursor.setBlockFormat(block)
            cursor.setBlockCharFormat(self._text)
            self.fresh = False
        else:
            cursor.insertBlock(block, self._text)

    def _begin_paragraph(self, cursor: QTextCursor, _token: Token) -> None:
        if self._rows is not None:
            return
        if not self._lists:
            self._begin_block(cursor, self._block_format())
            return
        block = self._block_format(bottom=4)
        if not self._item_begins:  # a further paragraph of an item
            block.setIndent(len(self._lists))
            self._begin_block(cursor, block)
            return
        self._item_begins = False
        self._begin_block(cursor, block)
        opened = self._lists[-1]
        if opened.made is None:
            opened.made = cursor.createList(opened.format)
        else:
            opened.made.add(cursor.block())

    def _list_format(self, token: Token) -> QTextListFormat:
        result = QTextListFormat()
        bullets = (QTextListFormat.Style.ListDisc, QTextListFormat.Style.ListCircle)
        if token.type == "ordered_list_open":
            result.setStyle(QTextListFormat.Style.ListDecimal)
            result.setStart(int(token.attrGet("start") or 1))
        else:
            result.setStyle(bullets[len(self._lists) % 2])
        result.setIndent(len(self._lists) + 1)
        return result

    def _write_inline(self, cursor: QTextCursor, children: Sequence[Token]) -> None:
        plain = QTextCharFormat(self._text)
        if self._heading:
            plain.setFontWeight(QFont.Weight.DemiBold)
            plain.setProperty(QTextFormat.Property.FontPixelSize, _HEADING_PIXELS.get(self._heading, 13))
        elif self._quotes:
            plain.setForeground(self._theme.dim)
        formats = [plain]
        for child in children:
            current = formats[-1]
            match child.type:
                case "text":
                    cursor.insertText(child.content, current)
                case "softbreak":
                    cursor.insertText(" ", current)
                case "hardbreak":
                    cursor.insertText("\u2028", current)
                case "code_inline":
                    cursor.insertText(child.content, self._inline_code(current))
                case "image":
                    cursor.insertText(f"[picture: {child.content or 'no description'}]", self._dimmed(current))
                case "strong_open" | "em_open" | "s_open" | "link_open":
                    formats.append(self._opened(current, child))
                case "strong_close" | "em_close" | "s_close" | "link_close":
                    formats.pop()
                case _:
                    cursor.insertText(child.content, current)

    def _opened(self, current: QTextCharFormat, token: Token) -> QTextCharFormat:
        result = QTextCharFormat(current)
        if token.type == "strong_open":
            result.setFontWeight(QFont.Weight.DemiBold)
        elif token.type == "em_open":
            result.setFontItalic(True)
        elif token.type == "s_open":
            result.setFontStrikeOut(True)
        else:
            result.setAnchor(True)
            result.setAnchorHref(str(token.attrGet("href") or ""))
            result.setForeground(self._theme.accent.lighter(125) if self._theme.dark else self._theme.accent)
            result.setFontUnderline(True)
        return result

    def _inline_code(self, current: QTextCharFormat) -> QTextCharFormat:
        result = QTextCharFormat(self._code)
        result.setBackground(self._theme.raised)
        result.setFontWeight(current.fontWeight())
        return result

    def _dimmed(self, current: QTextCharFormat) -> QTextCharFormat:
        result = QTextCharFormat(current)
        result.setForeground(self._theme.dim)
        return result

    def _write_code(self, cursor: QTextCursor, token: Token) -> None:
        frame = QTextFrameFormat()
        frame.setBackground(self._theme.window)
        frame.setPadding(10)
        frame.setBorder(0)
        frame.setTopMargin(4)
        frame.setBottomMargin(6)
        frame.setLeftMargin(16 * self._quotes + 24 * len(self._lists))
        if not self.fresh:
            cursor.insertBlock(self._spacer(), self._text)
        cursor.insertFrame(frame)
        block = QTextBlockFormat()
        block.setLineHeight(118.0, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.setBlockFormat(block)
        language = (token.info.split() or [""])[0]
        for piece, color in colored(token.content.removesuffix("\n"), language, self._theme):
            style = self._code
            if color is not None:
                style = QTextCharFormat(self._code)
                style.setForeground(color)
            cursor.insertText(piece, style)
        self._leave(cursor)

    def _write_table(self, cursor: QTextCursor, _token: Token) -> None:
        rows, self._rows = self._rows or [], None
        style = QTextTableFormat()
        style.setCellPadding(5)
        style.setCellSpacing(0)
        style.setBorder(1)
        style.setBorderCollapse(True)
        style.setBorderBrush(self._theme.track)
        style.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        style.setTopMargin(2)
        style.setBottomMargin(6)
        if not self.fresh:
            cursor.insertBlock(self._spacer(), self._text)
        table = cursor.insertTable(len(rows), max(len(row) for row in rows), style)
        for row_index, row in enumerate(rows):
            for column, cell in enumerate(row):
                inside = table.cellAt(row_index, column).firstCursorPosition()
                self._heading = 4 if row_index == 0 else 0
                self._write_inline(inside, cell.children or [])
        self._heading = 0
        self._leave(cursor)

    def _leave(self, cursor: QTextCursor) -> None:
        """Go to the empty block that Qt keeps after a frame, and make it invisible until it is used."""
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.setBlockFormat(self._spacer())
        cursor.setBlockCharFormat(self._text)
        self.fresh = True

    @staticmethod
    def _spacer() -> QTextBlockFormat:
        result = QTextBlockFormat()
        result.setLineHeight(1.0, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        return result
