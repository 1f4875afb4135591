"""Text as tall as what it says: selectable, never scrolling by itself, never loading anything."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSizeF, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QPalette, QTextOption
from PySide6.QtWidgets import QFrame, QTextBrowser, QWidget

from gui.widgets.labels import set_ink

if TYPE_CHECKING:
    from PySide6.QtGui import QWheelEvent

    from gui.chat.markdown import StreamedMarkdown
    from gui.theme import Theme

_OPENABLE = {"http", "https", "mailto"}


class Prose(QTextBrowser):
    """One turn's text."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._stream = self._new_stream()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.anchorClicked.connect(self._on_link)
        self._set_base(theme)
        self._fit(self.document().size())

    def _new_stream(self) -> StreamedMarkdown:
        from gui.chat.markdown import (
            StreamedMarkdown,  # a parser comes with it, which a window does not need to come up
        )

        return StreamedMarkdown(self.document(), self._theme)

    def append_markdown(self, text: str) -> None:
        """Add to a text that streams."""
        self._stream.append(text)

    def set_markdown(self, text: str) -> None:
        """Show another text."""
        self.document().clear()
        self._stream = self._new_stream()
        self._stream.append(text)

    def set_theme(self, theme: Theme, text: str | None) -> None:
        """Take another appearance; Markdown has to be written again for it, plain text (None) has not."""
        self._theme = theme
        self._set_base(theme)
        if text is not None:
            self.set_markdown(text)

    def loadResource(self, _kind: int, _name: QUrl | str) -> Any:  # noqa: N802  Qt's name
        """Nothing: no text of a model may read a file or an address."""
        return None

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the list of messages scrolls

    def _set_base(self, theme: Theme) -> None:
        set_ink(self, theme.text)
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Base, Qt.GlobalColor.transparent)
        self.setPalette(palette)

    @Slot(QSizeF)
    def _fit(self, size: QSizeF) -> None:
        self.setFixedHeight(max(ceil(size.height()), 1))

    @Slot(QUrl)
    def _on_link(self, url: QUrl) -> None:
        """A person clicked: a web address opens in the browser, anything else does nothing."""
        if url.scheme() in _OPENABLE:
            QDesktopServices.openUrl(url)
