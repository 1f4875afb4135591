"""What is to be measured: a row of fields, and the choice of splits, which stands elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QWidget

from gui.bench.words import read_numbers
from gui.theme import sized_font
from gui.widgets.labels import label, set_ink
from gui.widgets.pop_up import PopUp
from runtime.bench.order import BenchOrder

if TYPE_CHECKING:
    from gui.theme import Theme

COMPARISONS = {"": "This split", "even": "Also even", "shown": "Also shown"}
_FIELDS = (
    ("Prompts", "512", 70, "Tokens of the prompts: a row of the table for each number"),
    ("Answers", "128", 42, "Tokens of each answer"),
    ("At once", "1, 4", 54, "Clients that ask at the same time: a row for each number"),
    ("Rounds", "3", 30, "Rounds of each row, after one that warms up"),
)


class BenchForm(QWidget):
    """Fields that a person may leave as they are.

    Signals:
        changed: Something else is wanted.
        submitted: Return was pressed in a field.
    """

    changed = Signal()
    submitted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("bench_form")
        self.setAccessibleName("What to measure")
        self._names: list[QLabel] = []
        self.fields: list[QLineEdit] = []
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        for words, text, width, tip in _FIELDS:
            field = QLineEdit(text)
            field.setObjectName(f"bench_{words.lower().replace(' ', '_')}")
            field.setAccessibleName(words)
            field.setToolTip(tip)
            field.setFont(sized_font(12))
            field.setFixedWidth(width)
            field.textChanged.connect(self.changed)
            field.returnPressed.connect(self.submitted)
            name = label(f"{field.objectName()}_name", 12)
            name.setText(words)
            name.setBuddy(field)
            row.addWidget(name)
            row.addWidget(field)
            row.addSpacing(2)
            self._names.append(name)
            self.fields.append(field)
        self.comparison = PopUp(theme)
        self.comparison.setObjectName("bench_comparison")
        self.comparison.setAccessibleName("Splits to measure")
        self.comparison.setToolTip("Another split is measured after this one; then the model runs with this one again")
        self.comparison.setFont(sized_font(12))
        for name_of_it, words in COMPARISONS.items():
            self.comparison.addItem(words, name_of_it)
        self.comparison.activated.connect(self.changed)
        self.set_theme(theme)
        self.setFocusProxy(self.fields[0])

    @property
    def compared(self) -> str:
        """Which split is to be measured too: ``even``, ``shown``, or none."""
        return str(self.comparison.currentData())

    def order(self) -> BenchOrder | str:
        """What is wanted, or what is wrong with it."""
        read = [read_numbers(field.text()) for field in self.fields]
        for (name, *_), numbers, many in zip(_FIELDS, read, (True, False, True, False), strict=True):
            if numbers is None or (len(numbers) > 1 and not many):
                what = "whole numbers with commas between, as 512, 4096" if many else "one whole number"
                return f"{name}: write {what}"
        prompts, answers, clients, rounds = (numbers or () for numbers in read)
        return BenchOrder(prompts, answers[0], clients, rounds[0])

    def set_locked(self, *, locked: bool) -> None:
        """Take no changes while something is measured."""
        for field in self.fields:
            field.setReadOnly(locked)
        self.comparison.setEnabled(not locked)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self.comparison.set_theme(theme)
        for name in self._names:
            set_ink(name, theme.dim)
