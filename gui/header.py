"""The top of the window: the model, the mode, the buttons that start and stop, and why when they cannot."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gui.checks import Badge, badge
from gui.formatting import bytes_words
from gui.icons import icon
from gui.models.view import LOCKED
from gui.session import Phase
from gui.split.card import Tone
from gui.theme import ink_on
from gui.widgets.labels import ElidedLabel, label, set_ink
from gui.widgets.segmented import Segmented

if TYPE_CHECKING:
    from gui.status import Status
    from gui.store import Store
    from gui.theme import Theme

_MODE_TIPS = {
    "pipeline": "Each node holds a run of layers",
    "tensor": "Every node holds a part of every layer",
}


_GOALS = {
    "chat": ("Fastest chat", "The split and order of nodes with which one chat is fastest"),
    "requests": ("Most requests", "The split whose slowest node is fastest, for many requests at once"),
    "even": ("Even", "Give every node the same number of layers"),
    "room": ("Most room", "The split that leaves most memory on its fullest node"),
}


class Header(QWidget):
    """Shows the store's model, mode and status.

    Signals:
        start_wanted: Start was pressed.
        stop_wanted: Stop, or Cancel while loading, was pressed.
        goal_wanted: ``chat``, ``requests``, ``even`` or ``room``: the best split for that is wanted.
        mode_wanted: ``pipeline`` or ``tensor`` was chosen.
    """

    start_wanted = Signal()
    stop_wanted = Signal()
    goal_wanted = Signal(str)
    mode_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._active = False
        self.goal_reason: str | None = None
        """Why the layers cannot be shared out anew now."""
        self._tone = Tone.DIM
        self._dressed: tuple[bool, Theme] | None = None
        self.title = ElidedLabel("model_name", 20, QFont.Weight.DemiBold)
        self.subtitle = ElidedLabel("model_facts", 12)
        self.change = QPushButton("Change")
        self.change.setObjectName("change_model")
        self.change.setAccessibleName("Choose another model")
        self.change.setProperty("quiet", True)
        self.change.setFlat(True)
        self.badge = label("verified", 12, QFont.Weight.Medium)
        self._badge = Badge()
        self.mode = Segmented({"pipeline": "Pipeline", "tensor": "Tensor"}, theme)
        self.mode.setAccessibleName("Mode")
        self.mode.chosen.connect(self.mode_wanted)
        self.goals = {goal: QPushButton(text) for goal, (text, _tip) in _GOALS.items()}
        for goal, button in self.goals.items():
            button.setObjectName(f"{goal}_button")
            button.clicked.connect(partial(self.goal_wanted.emit, goal))
        self.start = QPushButton("Start")
        self.start.setObjectName("start_button")
        self.start.setMinimumWidth(92)
        self.start.clicked.connect(self._on_start)
        self.status = label("status", 12, wrap=True)
        self.status.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
        # Two lines always, so that a longer reason does not push the bar away under the mouse.
        self.status.setMinimumHeight(2 * self.status.fontMetrics().lineSpacing())
        upper, lower = QHBoxLayout(), QHBoxLayout()
        upper.setSpacing(8)
        upper.addWidget(self.title, 1)
        upper.addSpacing(16)
        for widget in (self.mode, *self.goals.values(), self.start):
            upper.addWidget(widget)
        lower.setSpacing(24)
        model = QHBoxLayout()
        model.setSpacing(10)
        model.addWidget(self.subtitle, 100)
        model.addWidget(self.change)
        model.addStretch(1)
        lower.addLayout(model, 6)
        lower.addWidget(self.badge, 0, Qt.AlignmentFlag.AlignTop)
        lower.addWidget(self.status, 7)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 14, 24, 0)
        column.setSpacing(4)
        column.addLayout(upper)
        column.addLayout(lower)

    def show_store(self, store: Store, status: Status) -> None:
        """Show what the store holds."""
        layout = store.layout
        self.title.setText(layout.name if layout else "Pomona")
        if layout:
            self.subtitle.setText(f"{store.layers_words} · {bytes_words(layout.weight_bytes)} weights")
        else:
            self.subtitle.setText("No model yet")
        self.subtitle.setMaximumWidth(self.subtitle.sizeHint().width())
        for widget in (self.change, self.mode, *self.goals.values()):
            widget.setVisible(layout is not None)
        self.change.setToolTip(LOCKED if store.session.active else "Run another model")
        self._show_badge(badge(store.plan, store.checks))
        self._show_mode(store)
        self._show_goals(store)
        self._show_start(store.session.phase, status)
        self.status.setText(status.words)
        self.status.setAccessibleName(status.words)
        self.status.setToolTip(status.words)
        self._tone = status.tone
        self._ink()

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        self._theme = theme
        self.mode.set_theme(theme)
        self._ink()
        self._dress_start()

    def _show_badge(self, now: Badge) -> None:
        self._badge = now
        self.badge.setText(now.words)
        self.badge.setVisible(bool(now.words))
        self.badge.setToolTip(now.tooltip)
        self.badge.setAccessibleDescription(now.tooltip)

    def _show_mode(self, store: Store) -> None:
        refusal = store.tensor_refusal
        self.mode.show_choice(store.mode)
        for name, segment in self.mode.segments.items():
            locked = "Stop to change the mode" if store.session.active else None
            segment.setEnabled(locked is None)
            more = " ".join(filter(None, (refusal, store.tensor_words))) if name == "tensor" else ""
            tip = f"{_MODE_TIPS[name]}. {more}" if more else _MODE_TIPS[name]
            segment.setToolTip(locked or tip)
            segment.setAccessibleDescription(locked or tip)

    def _show_goals(self, store: Store) -> None:
        reason = None
        if store.locked:
            reason = store.locked
        elif store.mode == "tensor":
            reason = "In tensor mode every node shares every layer"
        elif len(store.nodes) < 2:
            reason = "Layers can be shared out between two nodes or more"
        self.goal_reason = reason
        for goal, button in self.goals.items():
            button.setEnabled(reason is None)
            button.setToolTip(reason or _GOALS[goal][1])

    def _show_start(self, phase: Phase, status: Status) -> None:
        self._active = phase is not Phase.IDLE
        text, tip = {
            Phase.IDLE: ("Start", "Load the model on these nodes" if status.can_start else status.words),
            Phase.LOADING: ("Cancel", "Stop loading and end the workers"),
            Phase.RUNNING: ("Stop", "End the session and its workers"),
            Phase.STOPPING: ("Stopping…", status.words),
        }[phase]
        self.start.setText(text)
        self.start.setEnabled(status.can_start or phase in {Phase.LOADING, Phase.RUNNING})
        self.start.setToolTip(tip)
        self.start.setAccessibleDescription(tip)
        self._dress_start()

    def _dress_start(self) -> None:
        """Give Start its icon and its blue; both make Qt lay the window out again, so only when they change."""
        if self._dressed == (self._active, self._theme):
            return
        self._dressed = self._active, self._theme
        primary = not self._active
        ink = ink_on(self._theme.accent) if primary else self._theme.text
        self.start.setIcon(icon("stop" if self._active else "start", ink, self._theme.dim))
        self.start.setDefault(primary)  # what the Mac's own style makes blue
        if self.start.property("primary") != primary:
            self.start.setProperty("primary", primary)
            self.start.style().unpolish(self.start)
            self.start.style().polish(self.start)

    def _ink(self) -> None:
        theme = self._theme
        set_ink(self.title, theme.text)
        set_ink(self.subtitle, theme.dim)
        tones = {Tone.BAD: theme.bad, Tone.WARN: theme.warn, Tone.GOOD: theme.good, Tone.BUSY: theme.text}
        set_ink(self.status, tones.get(self._tone, theme.dim))
        set_ink(self.badge, tones.get(self._badge.tone, theme.dim))

    def _on_start(self) -> None:
        if self._active:
            self.stop_wanted.emit()
        else:
            self.start_wanted.emit()
