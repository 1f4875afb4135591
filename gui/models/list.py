"""The list of models: those in reach, under them those that the hub has found. A real list, painted in two lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import QFrame, QListWidget, QListWidgetItem, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from gui.icons import pixmap
from gui.theme import faded, sized_font

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.theme import Theme

_ROW_HEIGHT, _HEADING_HEIGHT = 44, 26
_STAR = 14
_ROLE = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. Without a key it is a heading, or says that there is nothing."""

    key: tuple[str, str] | None
    title: str
    words: str = ""
    is_favourite: bool = False
    is_open: bool = False


class ModelList(QListWidget):
    """Arrow keys choose, Return opens.

    Signals:
        chosen: The key of the entry that is looked at, or None.
        opened: The key of the entry that was double-clicked, or confirmed by Return.
    """

    chosen = Signal(object)
    opened = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._entries: tuple[Entry, ...] = ()
        self.setObjectName("model_list")
        self.setAccessibleName("Models")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.setMouseTracking(True)
        self.viewport().setAutoFillBackground(False)
        self._painter = _Delegate(theme, self)
        self.setItemDelegate(self._painter)
        self.currentItemChanged.connect(self._on_current)
        self.itemActivated.connect(self._on_activated)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self._entries

    @property
    def current_key(self) -> tuple[str, str] | None:
        item = self.currentItem()
        return _entry(item).key if item is not None else None

    def show_entries(self, entries: Sequence[Entry]) -> None:
        """List others; what was looked at stays so, if it is still there."""
        entries = tuple(entries)
        if entries == self._entries:
            return
        same_keys = [one.key for one in entries] == [one.key for one in self._entries]
        self._entries = entries
        if same_keys:
            for row, entry in enumerate(entries):
                _dress(self.item(row), entry)
            return
        key = self.current_key
        self.blockSignals(True)
        self.clear()
        for entry in entries:
            item = QListWidgetItem()
            _dress(item, entry)
            self.addItem(item)
            if entry.key is not None and entry.key == key:
                self.setCurrentItem(item)
        self.blockSignals(False)
        if self.current_key != key:
            self.chosen.emit(self.current_key)

    def choose(self, key: tuple[str, str]) -> None:
        """Look at this entry."""
        for row, entry in enumerate(self._entries):
            if entry.key == key:
                self.setCurrentRow(row)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._painter.theme = theme
        self.viewport().update()

    def _on_current(self, item: QListWidgetItem | None) -> None:
        self.chosen.emit(_entry(item).key if item is not None else None)

    def _on_activated(self, item: QListWidgetItem) -> None:
        if (key := _entry(item).key) is not None:
            self.opened.emit(key)


def _entry(item: QListWidgetItem) -> Entry:
    entry: Entry = item.data(_ROLE)
    return entry


def _dress(item: QListWidgetItem, entry: Entry) -> None:
    item.setData(_ROLE, entry)
    item.setText(entry.title)
    star = ", a favourite" if entry.is_favourite else ""
    shown = ", shown in the window" if entry.is_open else ""
    said = ", ".join(filter(None, (entry.title, entry.words)))
    item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{said}{star}{shown}")
    if entry.key is None:
        item.setFlags(Qt.ItemFlag.NoItemFlags)
    else:
        item.setToolTip(entry.key[0])


class _Delegate(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: ModelList) -> None:
        super().__init__(parent)
        self.theme = theme

    def sizeHint(self, _option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        entry: Entry = index.data(_ROLE)
        return QSize(120, _HEADING_HEIGHT if entry.key is None else _ROW_HEIGHT)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        entry: Entry = index.data(_ROLE)
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if entry.key is None:
            painter.setFont(sized_font(11, QFont.Weight.DemiBold))
            painter.setPen(self.theme.dim)
            bottom = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom
            painter.drawText(rect.adjusted(10, 0, -6, -5), bottom, entry.title)
        else:
            self._paint_entry(painter, entry, QRectF(rect), state)
        painter.restore()

    def _paint_entry(self, painter: QPainter, entry: Entry, rect: QRectF, state: QStyle.StateFlag) -> None:
        theme = self.theme
        box = rect.adjusted(2, 1, -2, -1)
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        painter.setPen(Qt.PenStyle.NoPen)
        if chosen:
            painter.setBrush(faded(theme.accent, 0.22 if theme.dark else 0.14))
            painter.drawRoundedRect(box, 7, 7)
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.setBrush(faded(theme.text, 0.05))
            painter.drawRoundedRect(box, 7, 7)
        inner = box.adjusted(8, 5, -8, -5)
        if entry.is_favourite:
            place = QRectF(inner.right() - _STAR, inner.top() + 1, _STAR, _STAR)
            painter.drawPixmap(place.topLeft(), pixmap("starred", theme.star, _STAR))
        room = inner.width() - (_STAR + 6 if entry.is_favourite else 0)
        strong, small = sized_font(13, QFont.Weight.DemiBold), sized_font(11)
        painter.setFont(strong)
        painter.setPen(theme.accent if entry.is_open and not chosen else theme.text)
        title = QFontMetricsF(strong).elidedText(entry.title, Qt.TextElideMode.ElideMiddle, room)
        painter.drawText(QRectF(inner.left(), inner.top(), room, 17), Qt.AlignmentFlag.AlignVCenter, title)
        painter.setFont(small)
        painter.setPen(theme.dim)
        words = QFontMetricsF(small).elidedText(entry.words, Qt.TextElideMode.ElideRight, inner.width())
        painter.drawText(
            QRectF(inner.left(), inner.bottom() - 15, inner.width(), 15), Qt.AlignmentFlag.AlignVCenter, words
        )
