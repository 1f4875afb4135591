"""Colours for code in an answer, from pygments' tokens."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pygments import lex
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, String
from pygments.util import ClassNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pygments.lexer import Lexer
    from PySide6.QtGui import QColor

    from gui.theme import Theme


def colored(code: str, language: str, theme: Theme) -> Iterator[tuple[str, QColor | None]]:
    """Pieces of ``code`` with their colour, None for plain text. An unknown language is plain."""
    lexer = _lexer(language)
    if lexer is None:
        yield code, None
        return
    colors = {
        Keyword: theme.keyword,
        String: theme.string,
        Number: theme.number,
        Comment: theme.comment,
        Name.Function: theme.function,
        Name.Class: theme.function,
        Name.Builtin: theme.function,
    }
    for kind, piece in lex(code, lexer):
        while kind not in colors and kind.parent is not None:
            kind = kind.parent  # noqa: PLW2901  up to a kind that has a colour
        yield piece, colors.get(kind)


@cache
def _lexer(language: str) -> Lexer | None:
    if not language:
        return None
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
