"""A fetch as it goes on: a bar for each node with bytes, rate and time left, and what can be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QFont, QPainter, QPen
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from gui.models.fetches import FetchState
from gui.models.node_row import small_button
from gui.theme import faded
from gui.widgets.labels import ElidedLabel, label, set_ink

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gui.models.fetches import Fetch, NodeFetching
    from gui.theme import Theme

_STEPS = 1000


class FetchBox(QWidget):
    """One fetch.

    Signals:
        pause_wanted: The key of the fetch: stop it for now.
        resume_wanted: Its key: go on with it.
        end_wanted: Its key: give it up, or take it from view when it is over.
    """

    pause_wanted = Signal(str)
    resume_wanted = Signal(str)
    end_wanted = Signal(str)

    def __init__(self, fetch: Fetch, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._fetch = fetch
        self.setObjectName("fetch_box")
        self._title = ElidedLabel("fetch_title", 12, QFont.Weight.DemiBold)
        self._state = label("fetch_state", 12, wrap=True)
        self.pause = small_button("Pause", "fetch_pause")
        self.pause.clicked.connect(self._on_pause)
        self.end = small_button("Cancel", "fetch_end")
        self.end.clicked.connect(self._on_end)
        upper = QHBoxLayout()
        upper.setSpacing(8)
        upper.addWidget(self._title, 1)
        upper.addWidget(self.pause)
        upper.addWidget(self.end)
        self._lines = QVBoxLayout()
        self._lines.setSpacing(8)
        self.bars: dict[str, _NodeBar] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 8, 10)
        column.setSpacing(4)
        column.addLayout(upper)
        column.addWidget(self._state)
        column.addLayout(self._lines)
        self.show_fetch(fetch)
        self.set_theme(theme)

    def show_fetch(self, fetch: Fetch) -> None:
        """It went on."""
        self._fetch = fetch
        self._title.setText(fetch.title)
        self._state.setText(fetch.state_words)
        self.setAccessibleName(f"{fetch.title}: {fetch.state_words}")
        self.pause.setVisible(fetch.state is not FetchState.DONE)
        self.pause.setText("Pause" if fetch.state is FetchState.RUNNING else "Go On")
        self.pause.setToolTip(
            "What has come stays, and it can go on later" if fetch.state is FetchState.RUNNING else "Fetch the rest"
        )
        self.end.setText("OK" if fetch.state is FetchState.DONE else "Cancel")
        self.end.setToolTip(
            "" if fetch.state is FetchState.DONE else "End it and drop layers that are not whole; whole ones stay"
        )
        for node in fetch.nodes:
            if node.node_id not in self.bars:
                self.bars[node.node_id] = bar = _NodeBar(node)
                bar.set_theme(self._theme)
                self._lines.addWidget(bar)
            self.bars[node.node_id].show_node(node, fetch.state)
        self._ink()

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        set_ink(self._title, theme.text)
        for bar in self.bars.values():
            bar.set_theme(theme)
        self._ink()
        self.update()

    def _ink(self) -> None:
        inks = {FetchState.FAILED: self._theme.bad, FetchState.DONE: self._theme.good}
        set_ink(self._state, inks.get(self._fetch.state, self._theme.dim))

    def _on_pause(self) -> None:
        wanted = self.pause_wanted if self._fetch.state is FetchState.RUNNING else self.resume_wanted
        wanted.emit(self._fetch.key)

    def _on_end(self) -> None:
        self.end_wanted.emit(self._fetch.key)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(faded(self._theme.text, 0.04))
        painter.setPen(QPen(self._theme.line, 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)


class _NodeBar(QWidget):
    """One node's name, bar and figures."""

    def __init__(self, node: NodeFetching) -> None:
        super().__init__()
        self._name = ElidedLabel("fetch_node", 12, QFont.Weight.Medium)
        self._figures = label("fetch_figures", 11)
        self._source = ElidedLabel("fetch_source", 11)
        self.bar = QProgressBar()
        self.bar.setObjectName("fetch_bar")
        self.bar.setTextVisible(False)
        self.bar.setRange(0, _STEPS)
        self.bar.setFixedHeight(5)
        upper = QHBoxLayout()
        upper.setSpacing(8)
        upper.addWidget(self._name, 1)
        upper.addWidget(self._figures)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 4, 0)
        column.setSpacing(3)
        column.addLayout(upper)
        column.addWidget(self.bar)
        column.addWidget(self._source)
        self.show_node(node, FetchState.RUNNING)

    def show_node(self, node: NodeFetching, state: FetchState) -> None:
        figures = node.progress_words(state)
        self._name.setText(node.name)
        self._figures.setText(figures)
        self._source.setText(node.words)
        self._source.setVisible(bool(node.words))
        self.bar.setValue(_STEPS if state is FetchState.DONE else round(node.share * _STEPS))
        self.bar.setAccessibleName(f"Fetched on {node.name}")
        self.bar.setAccessibleDescription(figures)

    def set_theme(self, theme: Theme) -> None:
        set_ink(self._name, theme.text)
        set_ink(self._figures, theme.dim)
        set_ink(self._source, theme.dim)
