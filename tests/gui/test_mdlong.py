"""Markdown in answers: the same whether it streams or not, and harmless whatever it says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QTextDocument, QTextListFormat

from gui.chat import markdown
from gui.chat.markdown import StreamedMarkdown, write_markdown
from gui.chat.prose import Prose
from gui.session_scenes import ANSWER
from gui.theme import DARK

MIXED = """# Title

A *paragraph* with **bold**, `code`, ~~struck~~ and a [link](https://example.org).

- one
- two
  - nested
- three

1. first
2. second

> quoted

```python
def f(x):
    return x + 1
```

| a | b |
|---|---|
| 1 | 2 |

---

After the table.

```
plain code
```
"""


def written(text, pieces=None):
    document = QTextDocument()
    stream = StreamedMarkdown(document, DARK)
    for piece in pieces or [text]:
        stream.append(piece)
    return document


def runs(block):
    """Where the letters change, and into what."""
    found = []
    fragment = block.begin()
    while not fragment.atEnd():
        form = fragment.fragment().charFormat()
        look = (form.fontWeight(), form.fontItalic(), form.fontStrikeOut(), form.anchorHref(), form.fontFixedPitch())
        if found and found[-1][1] == look:
            found[-1] = (found[-1][0] + fragment.fragment().length(), look)
        else:
            found.append((fragment.fragment().length(), look))
        fragment += 1
    return found


def shape(document):
    """Every block's text and what it is, to compare two documents by."""
    rows = []
    block = document.begin()
    while block.isValid():
        form = block.blockFormat()
        items = block.textList()
        rows.append(
            (
                block.text(),
                form.topMargin(),
                form.bottomMargin(),
                form.leftMargin(),
                form.indent(),
                items.format().style() if items else None,
                items.itemNumber(block) if items else None,
                runs(block),
            )
        )
        block = block.next()
    return rows


@pytest.mark.parametrize("text", [MIXED, ANSWER, MIXED + "\n" + ANSWER], ids=["mixed", "answer", "both"])
@pytest.mark.parametrize("size", [1, 3, 7, 40])
def test_a_streamed_answer_looks_like_one_written_at_once(dressed, text, size):
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert shape(written(text, pieces)) == shape(written(text))


blocks = st.sampled_from(
    ["# H", "text", "- a\n- b", "1. x\n2. y", "```py\nx = 1\n```", "> q", "| a |\n|---|\n| 1 |", "---", "", "**b", "`"]
)


@settings(deadline=None, max_examples=100)
@given(st.lists(blocks, max_size=8), st.integers(1, 9))
def test_any_mixture_of_blocks_streams_without_a_difference(parts, size):
    text = "\n\n".join(parts)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert shape(written(text, pieces)) == shape(written(text))


marks_and_words = st.sampled_from([*"ab1 .,*_`[]()|~-#>\n&;!\\", "word", "two words ", "* x"])


@settings(deadline=None, max_examples=15000)
@given(st.lists(marks_and_words, max_size=30), st.data())
def test_marks_between_words_stream_without_a_difference(parts, data):
    text, pieces, rest = "".join(parts), [], "".join(parts)
    while rest:
        size = data.draw(st.integers(1, 7))
        pieces.append(rest[:size])
        rest = rest[size:]
    assert shape(written(text, pieces or [""])) == shape(written(text))


def test_words_within_a_paragraph_are_not_parsed_again(monkeypatch):
    parsed: list[str] = []
    monkeypatch.setattr(markdown, "_PARSER", Counting(markdown._PARSER, parsed))
    words = "A line of an answer, with some words and a full stop. " * 3
    text = f"Some **marks** and {words}\n\nAnother paragraph: {words}"
    document = written(text, [text[start : start + 4] for start in range(0, len(text), 4)])
    assert len(parsed) < 20
    assert shape(document) == shape(written(text))


class Counting:
    """A parser that writes down what it was given."""

    def __init__(self, parser, parsed):
        self._parser, self._parsed = parser, parsed

    def parse(self, text):
        self._parsed.append(text)
        return self._parser.parse(text)


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=120))
def test_no_text_breaks_the_writer(text):
    written(text, list(text))


def test_marks_become_formats(dressed):
    document = written(MIXED)
    text = document.toPlainText()
    assert "Title" in text
    assert "**" not in text
    assert "```" not in text
    lists = [row[5] for row in shape(document) if row[5] is not None]
    assert QTextListFormat.Style.ListDisc in lists
    assert QTextListFormat.Style.ListDecimal in lists


def test_html_stays_text(dressed):
    document = written('<b>bold</b> <script>alert(1)</script>\n\n<img src="file:///etc/passwd">')
    assert "<script>alert(1)</script>" in document.toPlainText()
    assert "<img" in document.toPlainText()


def test_a_picture_is_only_its_description(dressed):
    document = written("![a cat](https://example.org/cat.png) ![](cat.png) ![secret](file:///etc/passwd)")
    assert document.toPlainText().startswith("[picture: a cat] [picture: no description] ")
    assert "<img" not in document.toHtml()


class Watchful(Prose):
    """Counts what is asked to be loaded."""

    def __init__(self):
        super().__init__(DARK)
        self.asked = []

    def loadResource(self, kind, name):  # noqa: N802  Qt's name
        self.asked.append(name)
        return super().loadResource(kind, name)


def test_nothing_is_loaded_from_files_or_the_network(qtbot, tmp_path):
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    prose = Watchful()
    qtbot.addWidget(prose)
    prose.append_markdown(f"![x]({(tmp_path / 'secret.txt').as_uri()}) [y]({(tmp_path / 'secret.txt').as_uri()})")
    with qtbot.waitExposed(prose):
        prose.show()
    assert prose.asked == []
    assert prose.loadResource(2, QUrl.fromLocalFile(str(tmp_path / "secret.txt"))) is None
    assert "secret\n" not in prose.toPlainText()


def test_only_web_addresses_open_and_only_on_a_click(qtbot, monkeypatch):
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    prose = Prose(DARK)
    qtbot.addWidget(prose)
    prose.append_markdown("[a](https://example.org) [b](file:///etc/passwd)")
    assert opened == []
    for address in ("https://example.org", "file:///etc/passwd", "javascript:alert(1)"):
        prose.anchorClicked.emit(QUrl(address))
    assert opened == ["https://example.org"]


def test_writing_again_replaces_what_was_there(dressed):
    document = written("old")
    write_markdown(document, "new", DARK)
    assert document.toPlainText() == "new"
