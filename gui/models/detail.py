"""One model: what it is made of, which splits it can do, which node has what of it, and what is being fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from gui.icons import icon
from gui.models.fetch_box import FetchBox
from gui.models.node_row import NodeRow
from gui.widgets.labels import ElidedLabel, label, set_ink

if TYPE_CHECKING:
    from gui.models.view import ModelView
    from gui.theme import Theme

_STAR = 18


class ModelDetail(QScrollArea):
    """Shows a :class:`ModelView`; its parts stay what they are while only their words change.

    Signals:
        open_wanted: The window shall show this model.
        split_wanted: Its nodes shall fetch what the split needs.
        favourite_wanted: Whether it shall be a favourite.
        keep_wanted: A node's id: keep a full copy there.
        delete_wanted: A node's id: delete what is there.
        pause_wanted: The key of a fetch.
        resume_wanted: The key of a fetch.
        end_wanted: The key of a fetch.
    """

    open_wanted = Signal()
    split_wanted = Signal()
    favourite_wanted = Signal(bool)
    keep_wanted = Signal(str)
    delete_wanted = Signal(str)
    pause_wanted = Signal(str)
    resume_wanted = Signal(str)
    end_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.view: ModelView | None = None
        self.setObjectName("model_detail")
        self.setAccessibleName("The chosen model")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.title = ElidedLabel("detail_title", 16, QFont.Weight.DemiBold)
        self.star = QPushButton()
        self.star.setObjectName("favourite")
        self.star.setCheckable(True)
        self.star.setFlat(True)
        self.star.setProperty("quiet", True)
        self.star.setIconSize(QSize(_STAR, _STAR))
        self.star.clicked.connect(self.favourite_wanted)
        self._origin = ElidedLabel("detail_origin", 11)
        self.facts = label("detail_facts", 12, wrap=True)
        self.open = QPushButton("Open")
        self.open.setObjectName("open_model")
        self.open.setProperty("primary", True)
        self.open.clicked.connect(self.open_wanted)
        self.fetch = QPushButton("Fetch for the Split")
        self.fetch.setObjectName("fetch_split")
        self.fetch.clicked.connect(self.split_wanted)
        self._ways = QGridLayout()
        self._ways.setContentsMargins(0, 0, 0, 0)
        self._ways.setHorizontalSpacing(12)
        self._ways.setVerticalSpacing(3)
        self._ways.setColumnStretch(1, 1)
        self._way_names: list[QLabel] = []
        self.pipeline, self.tensor = self._way("Pipeline", "pipeline_way"), self._way("Tensor", "tensor_way")
        self._heading = label("nodes_heading", 12, QFont.Weight.DemiBold)
        self._heading.setText("On your nodes")
        self.rows: dict[str, NodeRow] = {}
        self.boxes: dict[str, FetchBox] = {}
        self._boxes, self._rows = QVBoxLayout(), QVBoxLayout()
        self._boxes.setSpacing(8)
        self._rows.setSpacing(0)
        inner = self._lay_out()
        self.setWidget(inner)
        inner.setAutoFillBackground(False)  # it lies on the panel
        self.set_theme(theme)

    def _lay_out(self) -> QWidget:
        inner = QWidget()
        top = QHBoxLayout()
        top.setSpacing(6)
        top.addWidget(self.title, 1)
        top.addWidget(self.star)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.open)
        buttons.addWidget(self.fetch)
        buttons.addStretch(1)
        column = QVBoxLayout(inner)
        column.setContentsMargins(4, 0, 14, 12)
        column.setSpacing(4)
        column.addLayout(top)
        column.addWidget(self._origin)
        column.addWidget(self.facts)
        column.addSpacing(4)
        column.addLayout(buttons)
        column.addSpacing(4)
        column.addLayout(self._boxes)
        column.addSpacing(2)
        column.addLayout(self._ways)
        column.addSpacing(8)
        column.addWidget(self._heading)
        column.addLayout(self._rows)
        column.addStretch(1)
        return inner

    def _way(self, name: str, object_name: str) -> QLabel:
        words = label(object_name, 12, wrap=True)
        title = label(f"{object_name}_name", 12)
        title.setText(name)
        row = len(self._way_names)
        self._ways.addWidget(title, row, 0, Qt.AlignmentFlag.AlignTop)
        self._ways.addWidget(words, row, 1)
        self._way_names.append(title)
        return words

    def show_view(self, view: ModelView) -> None:
        """Show a model, or what became of the one that is shown."""
        another = self.view is None or self.view.full_name != view.full_name
        self.view = view
        self.title.setText(view.title)
        self.title.setAccessibleName(view.title)
        self._origin.setText(view.origin)
        self.facts.setText(view.facts)
        ways = ((self.pipeline, view.pipeline), (self.tensor, view.tensor))
        for name, (words, text) in zip(self._way_names, ways, strict=True):
            words.setText(text)
            for part in (name, words):
                part.setVisible(bool(text))
        for button, reason, tip in (
            (self.open, view.open_reason, "Show its layers over your nodes; nothing is loaded before you press Start"),
            (self.fetch, view.split_reason, "Have each node get the layers that the split gives it, before Start does"),
        ):
            button.setEnabled(reason is None)
            button.setToolTip(reason or tip)
            button.setAccessibleDescription(reason or tip)
        self._show_star(is_favourite=view.is_favourite)
        self._show_rows(view)
        self._show_boxes(view)
        self._ink()
        if another:
            self.verticalScrollBar().setValue(0)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self._ink()
        if self.view is not None:
            self._show_star(is_favourite=self.view.is_favourite)

    def _ink(self) -> None:
        """Again whenever something is shown: a style sheet takes colours back when a widget gets another parent."""
        theme = self._theme
        for part in (self.title, self.facts, self.pipeline, self.tensor, self._heading):
            set_ink(part, theme.text)
        for part in (self._origin, *self._way_names):
            set_ink(part, theme.dim)
        for row in self.rows.values():
            row.set_theme(theme)
        for box in self.boxes.values():
            box.set_theme(theme)

    def _show_star(self, *, is_favourite: bool) -> None:
        self.star.setChecked(is_favourite)
        ink = self._theme.star if is_favourite else self._theme.dim
        self.star.setIcon(icon("starred" if is_favourite else "star", ink, size=_STAR))
        self.star.setAccessibleName("Favourite")
        self.star.setToolTip("A favourite: listed first" if is_favourite else "Make it a favourite, to be listed first")

    def _show_rows(self, view: ModelView) -> None:
        self._heading.setVisible(bool(view.lines))
        if list(self.rows) != [line.node_id for line in view.lines]:
            for row in self.rows.values():
                row.hide()
                row.deleteLater()
            self.rows = {line.node_id: NodeRow(line, self._theme) for line in view.lines}
            for row in self.rows.values():
                row.keep_wanted.connect(self.keep_wanted)
                row.delete_wanted.connect(self.delete_wanted)
                self._rows.addWidget(row)
        for line in view.lines:
            self.rows[line.node_id].show_line(line)

    def _show_boxes(self, view: ModelView) -> None:
        fetches = {fetch.key: fetch for fetch in view.fetches}
        for key in [key for key in self.boxes if key not in fetches]:
            box = self.boxes.pop(key)
            box.hide()
            box.deleteLater()
        for key, fetch in fetches.items():
            if key not in self.boxes:
                self.boxes[key] = box = FetchBox(fetch, self._theme)
                for its, ours in (
                    (box.pause_wanted, self.pause_wanted),
                    (box.resume_wanted, self.resume_wanted),
                    (box.end_wanted, self.end_wanted),
                ):
                    its.connect(ours)
                self._boxes.addWidget(box)
            self.boxes[key].show_fetch(fetch)
