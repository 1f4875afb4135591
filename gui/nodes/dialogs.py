"""The small dialogs of trust: type a code, show a code, add an address. None waits: signals bring the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from discovery.address import BadAddress, parse_address
from gui.theme import mono_font
from gui.widgets.labels import label, set_ink

if TYPE_CHECKING:
    from gui.theme import Theme
    from runtime.agent.trust_messages import ShownCode
    from runtime.cluster.nodes import UnpairedNode

_CODE_DIGITS = 6
_WIDTH = 380


class SmallDialog(QDialog):
    """A title, a sentence, a field, a line for what went wrong, and the buttons on the right."""

    def __init__(self, name: str, title: str, sentence: str, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setWindowTitle(title)
        self.setModal(False)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFixedWidth(_WIDTH)
        self.theme = theme
        heading = label(f"{name}_title", 15, QFont.Weight.DemiBold, wrap=True)
        heading.setText(title)
        words = label(f"{name}_words", 13, wrap=True)
        words.setText(sentence)
        set_ink(words, theme.dim)
        self.trouble = label(f"{name}_trouble", 12, QFont.Weight.Medium, wrap=True)
        set_ink(self.trouble, theme.bad)
        self.trouble.hide()
        self.body = QVBoxLayout()
        self.body.setSpacing(8)
        self.buttons = QHBoxLayout()
        self.buttons.addStretch()
        column = QVBoxLayout(self)
        column.setContentsMargins(22, 20, 22, 18)
        column.setSpacing(10)
        for part in (heading, words):
            column.addWidget(part)
        column.addLayout(self.body)
        column.addWidget(self.trouble)
        column.addLayout(self.buttons)

    def say_trouble(self, words: str) -> None:
        """Say what went wrong; an empty sentence takes it back."""
        self.trouble.setText(words)
        self.trouble.setVisible(bool(words))
        self.adjustSize()

    def add_button(self, name: str, text: str, *, primary: bool = False) -> QPushButton:
        button = QPushButton(text)
        button.setObjectName(name)
        button.setProperty("primary", primary)
        button.setDefault(primary)
        button.setAutoDefault(primary)
        self.buttons.addWidget(button)
        return button


class PairDialog(SmallDialog):
    """Asks for the code that another machine shows.

    Signals:
        code_typed: ``(UnpairedNode, code)``.
    """

    code_typed = Signal(object, str)

    def __init__(self, node: UnpairedNode, theme: Theme, parent: QWidget) -> None:
        super().__init__(
            "pair_dialog",
            f"Pair with {node.name}",
            f"On {node.name}, choose Nodes, Show Pairing Code (or “pomona agent code” in its terminal), and type the "
            "six digits here. Afterwards each of you can use the other.",
            theme,
            parent,
        )
        self.node = node
        self.field = QLineEdit()
        self.field.setObjectName("pair_code")
        self.field.setAccessibleName("Pairing code")
        self.field.setInputMethodHints(Qt.InputMethodHint.ImhDigitsOnly)
        self.field.setMaxLength(_CODE_DIGITS + 2)
        self.field.setFont(mono_font(22))
        self.field.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.field.textChanged.connect(self._on_text)
        self.body.addWidget(self.field)
        self.add_button("pair_cancel", "Cancel").clicked.connect(self.close)
        self.pair_button = self.add_button("pair_accept", "Pair", primary=True)
        self.pair_button.clicked.connect(self._on_pair)
        self._on_text()

    def failed(self, words: str) -> None:
        """It did not work: say why, and let the person try again."""
        self.say_trouble(words)
        self.field.setEnabled(True)
        self.field.selectAll()
        self.field.setFocus()
        self._on_text()

    @property
    def _code(self) -> str:
        return "".join(self.field.text().split())

    def _on_text(self) -> None:
        complete = len(self._code) == _CODE_DIGITS and self._code.isascii() and self._code.isdigit()
        self.pair_button.setEnabled(complete)
        self.pair_button.setToolTip("" if complete else "The code has six digits")

    def _on_pair(self) -> None:
        self.say_trouble("")
        self.field.setEnabled(False)
        self.pair_button.setEnabled(False)
        self.pair_button.setToolTip("Asking the other machine")
        self.code_typed.emit(self.node, self._code)


class CodeDialog(SmallDialog):
    """Shows this machine's code and how long it is good for.

    Signals:
        renewed: The person wants another code.
        hidden: The dialog was closed: the code is to be shown no more.
    """

    renewed = Signal()
    hidden = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(
            "code_dialog",
            "Pairing code of this machine",
            "On the other machine, choose this one and Pair, and type these six digits there.",
            theme,
            parent,
        )
        self._seconds = 0
        self.code = QLabel("······")
        self.code.setObjectName("shown_code")
        self.code.setTextFormat(Qt.TextFormat.PlainText)
        self.code.setFont(mono_font(40))
        self.code.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.code.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.remaining = label("code_remaining", 12)
        self.remaining.setAlignment(Qt.AlignmentFlag.AlignCenter)
        set_ink(self.remaining, theme.dim)
        self.body.addWidget(self.code)
        self.body.addWidget(self.remaining)
        self.again = self.add_button("code_again", "New Code")
        self.again.clicked.connect(self.renewed)
        self.again.hide()
        self.add_button("code_close", "Done", primary=True).clicked.connect(self.close)
        self._timer = QTimer(self)
        self._timer.setInterval(1000)
        self._timer.timeout.connect(self._on_second)
        self.finished.connect(self.hidden)

    def show_code(self, shown: ShownCode) -> None:
        """A fresh code."""
        self.say_trouble("")
        self.code.setText(f"{shown.code[:3]} {shown.code[3:]}")
        self.code.setAccessibleName(" ".join(shown.code))
        self._seconds = round(shown.seconds)
        self.again.hide()
        self._tell()
        self._timer.start()

    def failed(self, words: str) -> None:
        """There is no code, and why."""
        self._timer.stop()
        self.remaining.setText("")
        self.say_trouble(words)
        self.again.show()

    def _on_second(self) -> None:
        self._seconds -= 1
        self._tell()

    def _tell(self) -> None:
        if self._seconds > 0:
            self.remaining.setText(f"Good for {self._seconds} s")
            return
        self._timer.stop()
        self.code.setText("······")
        self.remaining.setText("It has run out")
        self.again.show()


class AddressDialog(SmallDialog):
    """Asks where to look for a machine that does not show up by itself.

    Signals:
        address_typed: :class:`discovery.address.HostPort`.
    """

    address_typed = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(
            "address_dialog",
            "Add by address",
            "For networks that keep machines from seeing each other. It is remembered and tried again.",
            theme,
            parent,
        )
        self.field = QLineEdit()
        self.field.setObjectName("address")
        self.field.setAccessibleName("Address")
        self.field.setPlaceholderText("studio.local, 192.168.1.20:47665 or an IPv6 address")
        self.field.textChanged.connect(self._on_text)
        self.body.addWidget(self.field)
        self.add_button("address_cancel", "Cancel").clicked.connect(self.close)
        self.add = self.add_button("address_accept", "Add", primary=True)
        self.add.clicked.connect(self._on_add)
        self._on_text()

    def _on_text(self) -> None:
        self.say_trouble("")
        typed = bool(self.field.text().strip())
        self.add.setEnabled(typed)
        self.add.setToolTip("" if typed else "Type an address first")

    def _on_add(self) -> None:
        try:
            place = parse_address(self.field.text())
        except BadAddress as error:
            self.say_trouble(f"{error}.")
            return
        self.address_typed.emit(place)
        self.close()
