"""The table of a benchmark: figures with their spread below, the fastest marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QTableWidget,
    QTableWidgetItem,
)

from gui.bench.words import HEAD_TIPS, HEADS, cells, stage_words
from gui.theme import faded, sized_font

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPainter
    from PySide6.QtWidgets import QStyleOptionViewItem

    from gui.bench.words import Cell
    from gui.theme import Theme
    from runtime.bench.table import Measured

_CELL = Qt.ItemDataRole.UserRole
_ROW_HEIGHT = 40
_SIDE = 6
_WIDTHS = (0, 52, 56, 76, 92, 78, 78)


class BenchTable(QTableWidget):
    """Read-only; arrow keys go through it, and its tooltips tell what each stage took."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(0, len(HEADS))
        self._rows: tuple[Measured, ...] = ()
        self.setObjectName("bench_table")
        self.setAccessibleName("What was measured")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.viewport().setAutoFillBackground(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        head = self.horizontalHeader()
        head.setFont(sized_font(11))
        head.setHighlightSections(False)
        head.setSectionsClickable(False)
        head.setMinimumSectionSize(48)
        for column, (name, tip, width) in enumerate(zip(HEADS, HEAD_TIPS, _WIDTHS, strict=True)):
            item = QTableWidgetItem(name)
            item.setToolTip(tip)
            item.setTextAlignment(_side(column) | Qt.AlignmentFlag.AlignVCenter)
            self.setHorizontalHeaderItem(column, item)
            if width:
                head.setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
                self.setColumnWidth(column, width)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self._delegate = _TwoLines(theme, self)
        self.setItemDelegate(self._delegate)

    @property
    def rows(self) -> tuple[Measured, ...]:
        return self._rows

    def show_rows(self, rows: Sequence[Measured]) -> None:
        """Show others, the newest in view."""
        self._rows = tuple(rows)
        self.setRowCount(len(self._rows))
        for number, row in enumerate(self._rows):
            tip = stage_words(row)
            for column, cell in enumerate(cells(row, self._rows)):
                item = QTableWidgetItem(cell.words)
                item.setData(_CELL, cell)
                item.setToolTip(tip)
                self.setItem(number, column, item)
        self.scrollToBottom()

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._delegate.theme = theme
        self.viewport().update()


class _TwoLines(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: BenchTable) -> None:
        super().__init__(parent)
        self.theme = theme

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        cell: Cell = index.data(_CELL)
        theme, box = self.theme, QRectF(option.rect)
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, faded(theme.accent, 0.18))
        painter.setPen(QPen(theme.line, 1))
        painter.drawLine(box.bottomLeft(), box.bottomRight())
        side = _side(index.column())
        inner = box.adjusted(_SIDE, 3, -_SIDE, -3)
        upper, lower = (inner, inner) if not cell.below else (inner.adjusted(0, 0, 0, -16), inner.adjusted(0, 18, 0, 0))
        figure = f"▲ {cell.figure}" if cell.best else cell.figure
        self._line(painter, upper, side, figure, theme.good if cell.best else theme.text, bold=True)
        if cell.below:
            self._line(painter, lower, side, cell.below, theme.dim, bold=False)
        painter.restore()

    def _line(
        self, painter: QPainter, box: QRectF, side: Qt.AlignmentFlag, text: str, ink: QColor, *, bold: bool
    ) -> None:
        painter.setFont(sized_font(12, QFont.Weight.DemiBold) if bold else sized_font(11))
        painter.setPen(ink)
        elided = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(box.width()))
        painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, elided)

    def sizeHint(self, _option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(60, _ROW_HEIGHT)


def _side(column: int) -> Qt.AlignmentFlag:
    return Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
