"""The system prompt and the sampling of a chat, under the pane's title while they are open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDoubleSpinBox, QHBoxLayout, QLabel, QPlainTextEdit, QSpinBox, QVBoxLayout, QWidget

from gui.chat.book import ChatSettings
from gui.theme import sized_font
from gui.widgets.labels import label, set_ink

if TYPE_CHECKING:
    from gui.theme import Theme

_LONGEST_ANSWER = 1_000_000
_RANDOM = -1


class SettingsPanel(QWidget):
    """Applies at once.

    Signals:
        changed: The :class:`ChatSettings` that are set now.
    """

    changed = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("chat_settings")
        self.setAccessibleName("Settings of this chat")
        self.system = QPlainTextEdit()
        self.system.setObjectName("system_prompt")
        self.system.setAccessibleName("System prompt")
        self.system.setPlaceholderText("What the model is told before the chat, such as: You are a patient teacher.")
        self.system.setFont(sized_font(12))
        self.system.setTabChangesFocus(True)
        self.system.setFixedHeight(2 * self.system.fontMetrics().lineSpacing() + 14)
        self.temperature = _decimal("temperature", 0.0, 2.0, 0.1, "0 always takes the likeliest token")
        self.top_p = _decimal("top_p", 0.05, 1.0, 0.05, "Only the likeliest tokens that together have this probability")
        self.max_tokens = _whole("max_tokens", 1, _LONGEST_ANSWER, "The longest answer, in tokens")
        self.max_tokens.setSingleStep(256)
        self.seed = _whole("seed", _RANDOM, 2**31 - 1, "Repeats a random answer")
        self.seed.setSpecialValueText("random")
        self._names: list[QLabel] = [label("system_name", 12)]
        self._names[0].setText("System prompt")
        row = QHBoxLayout()
        row.setSpacing(6)
        for words, field in (
            ("Temperature", self.temperature),
            ("Top P", self.top_p),
            ("Longest", self.max_tokens),
            ("Seed", self.seed),
        ):
            name = label(f"{field.objectName()}_name", 12)
            name.setText(words)
            name.setBuddy(field)
            field.setAccessibleName(words)
            field.setFont(sized_font(12))
            field.valueChanged.connect(self._on_changed)
            self._names.append(name)
            row.addWidget(name)
            row.addWidget(field)
            row.addSpacing(8)
        row.addStretch(1)
        self.system.textChanged.connect(self._on_changed)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 2, 14, 6)
        column.setSpacing(5)
        column.addWidget(self._names[0])
        column.addWidget(self.system)
        column.addLayout(row)
        self._showing = False
        self.set_theme(theme)
        self.hide()

    @property
    def settings(self) -> ChatSettings:
        """What is set now."""
        seed = self.seed.value()
        return ChatSettings(
            self.system.toPlainText(),
            round(self.temperature.value(), 2),
            round(self.top_p.value(), 2),
            self.max_tokens.value(),
            None if seed == _RANDOM else seed,
        )

    def show_settings(self, settings: ChatSettings) -> None:
        """Show those of another chat; nobody is told."""
        self._showing = True
        if self.system.toPlainText() != settings.system:
            self.system.setPlainText(settings.system)
        self.temperature.setValue(settings.temperature)
        self.top_p.setValue(settings.top_p)
        # Another program's settings may be beyond what Qt can hold.
        self.max_tokens.setValue(min(settings.max_tokens, self.max_tokens.maximum()))
        seed = _RANDOM if settings.seed is None else settings.seed
        self.seed.setValue(min(seed, self.seed.maximum()))
        self._showing = False

    def set_theme(self, theme: Theme) -> None:
        """Take another appearance."""
        for name in self._names:
            set_ink(name, theme.dim)

    def _on_changed(self) -> None:
        if not self._showing:
            self.changed.emit(self.settings)


def _decimal(name: str, low: float, high: float, step: float, tip: str) -> QDoubleSpinBox:
    field = QDoubleSpinBox()
    field.setObjectName(name)
    field.setRange(low, high)
    field.setSingleStep(step)
    field.setToolTip(tip)
    return field


def _whole(name: str, low: int, high: int, tip: str) -> QSpinBox:
    field = QSpinBox()
    field.setObjectName(name)
    field.setRange(low, high)
    field.setToolTip(tip)
    return field
