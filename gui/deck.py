"""The panes that share one place in the window: one is shown, and a switch in its title row leads to the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from gui.icons import icon
from gui.widgets.segmented import Segmented

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from gui.theme import Theme
    from gui.widgets.panel import Panel

ENLARGE, REDUCE = "Enlarge Pane", "Back to the Split"
_MARGIN = 12
_GAP = 8
_TOP = 6


class Deck(QWidget):
    """Panes by name. Add them before the window is shown: ``deck.add("log", "Log", pane)``, and no more is needed.

    A pane is a :class:`Panel` whose focus proxy is where a person begins. It is told of the theme through the deck.

    Signals:
        shown: The pane of this name is the one that is seen now.
        enlarged_changed: Whether the panes take the place of the split.
    """

    shown = Signal(str)
    enlarged_changed = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("deck")
        self.setAccessibleName("Panes")
        self._theme = theme
        self.titles: dict[str, str] = {}
        self._panes: dict[str, Panel] = {}
        self._stack = QStackedWidget()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._stack)
        self.switch = Segmented({}, theme)
        self.switch.setObjectName("pane_switch")
        self.switch.setAccessibleName("What is shown beside the live numbers")
        self.switch.chosen.connect(self.show_pane)
        self.enlarge = QPushButton()
        self.enlarge.setObjectName("enlarge_pane")
        self.enlarge.setCheckable(True)
        self.enlarge.setFlat(True)
        self.enlarge.setProperty("quiet", True)
        self.enlarge.toggled.connect(self._on_enlarge)
        left, right = QWidget(self), QWidget(self)
        self._corners = (left, right)
        for corner, widget in ((left, self.switch), (right, self.enlarge)):
            row = QHBoxLayout(corner)
            row.setContentsMargins(0, 0, 0, 0)
            row.addWidget(widget)
        self._dress_enlarge()

    @property
    def current(self) -> str:
        """The name of the pane that is shown."""
        shown = self._stack.currentWidget()
        return next(name for name, pane in self._panes.items() if pane is shown)

    @property
    def enlarged(self) -> bool:
        return self.enlarge.isChecked()

    def add(self, name: str, title: str, pane: Panel) -> None:
        """Take a pane in; the first one is shown."""
        self.titles[name] = title
        self._panes[name] = pane
        self._stack.addWidget(pane)
        self.switch.add(name, title)
        self.switch.show_choice(self.current)
        for one in self._panes.values():
            one.make_room(_MARGIN + self._corners[0].sizeHint().width(), _GAP + self._corners[1].sizeHint().width())

    @Slot(str)
    def show_pane(self, name: str) -> None:
        """Show a pane."""
        before = self.current
        self.switch.show_choice(name)
        self._stack.setCurrentWidget(self._panes[name])
        if name != before:
            self.shown.emit(name)

    def focus_pane(self, name: str) -> None:
        """Show a pane and give it the keyboard."""
        self.show_pane(name)
        self._panes[name].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def set_enlarged(self, *, on: bool) -> None:
        """Take the place of the split, or give it back."""
        self.enlarge.setChecked(on)

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self.switch.set_theme(theme)
        for pane in self._panes.values():
            pane.set_theme(theme)
        self._dress_enlarge()

    def _dress_enlarge(self) -> None:
        words = REDUCE if self.enlarged else ENLARGE
        self.enlarge.setIcon(icon("reduce" if self.enlarged else "enlarge", self._theme.dim))
        self.enlarge.setAccessibleName(words)
        self.enlarge.setToolTip("Show the split and the live numbers again" if self.enlarged else words)

    @Slot(bool)
    def _on_enlarge(self, on: bool) -> None:
        self._dress_enlarge()
        self.enlarged_changed.emit(on)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        left, right = self._corners
        for corner, x in ((left, _MARGIN), (right, self.width() - _GAP - right.sizeHint().width())):
            corner.setGeometry(x, _TOP, corner.sizeHint().width(), self.switch.height())
            corner.raise_()
