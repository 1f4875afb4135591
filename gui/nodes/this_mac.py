"""What a person meets first: why macOS asks about the local network, whether it works, and sharing at login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices, QFont
from PySide6.QtWidgets import QCheckBox

from discovery.local_network import SETTINGS_URL, Verdict, advice
from gui.nodes.dialogs import SmallDialog
from gui.widgets.labels import label, set_ink

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gui.theme import Theme

_PERMISSION = {Verdict.PERMISSION_OFF, Verdict.PERMISSION_STUCK}
_FINE = {Verdict.WORKS, Verdict.NOBODY_ANSWERED}


class ThisMacDialog(SmallDialog):
    """Tests the network as soon as it opens.

    Signals:
        test_wanted: Look whether the local network works; :meth:`show_verdict` follows.
        share_wanted: Whether this Mac shall be shared at each login; :meth:`show_sharing` follows.
    """

    test_wanted = Signal()
    share_wanted = Signal(bool)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(
            "this_mac_dialog",
            "This Mac and your network",
            "Pomona finds your other Macs over the local network, and macOS asks once whether it may. "
            "Without that, no other Mac shows up. Nothing of it leaves your network.",
            theme,
            parent,
        )
        self.problem = label("network_problem", 13, QFont.Weight.Medium, wrap=True)
        self.advice = label("network_advice", 12, wrap=True)
        set_ink(self.advice, theme.dim)
        self.share = QCheckBox("Share this Mac when I log in")
        self.share.setObjectName("share_at_login")
        self.share.clicked.connect(self.share_wanted)
        for part in (self.problem, self.advice, self.share):
            self.body.addWidget(part)
        self.settings = self.add_button("network_settings", "Open Settings…")
        self.settings.clicked.connect(self._on_settings)
        self.again = self.add_button("network_again", "Test Again")
        self.again.clicked.connect(self.begin)
        self.add_button("this_mac_done", "Done", primary=True).clicked.connect(self.close)
        self.show_sharing(on=False, reason="Asking macOS")

    def begin(self) -> None:
        """Test, from the beginning."""
        self.problem.setText("Testing the network…")
        set_ink(self.problem, self.theme.text)
        self.advice.setText("")
        self.settings.hide()
        self.again.setEnabled(False)
        self.again.setToolTip("The test runs")
        self.test_wanted.emit()

    def show_verdict(self, verdict: Verdict) -> None:
        """What the test found."""
        problem, what_to_do = advice(verdict)
        self.problem.setText(problem)
        set_ink(self.problem, self.theme.good if verdict in _FINE else self.theme.warn)
        self.advice.setText("" if verdict is Verdict.WORKS else what_to_do)
        self.settings.setVisible(verdict in _PERMISSION)
        self.again.setEnabled(True)
        self.again.setToolTip("")
        self.adjustSize()

    def show_sharing(self, *, on: bool, reason: str = "") -> None:
        """Whether it is on, and why it cannot be switched if it cannot."""
        self.share.setChecked(on)
        self.share.setEnabled(not reason)
        self.share.setToolTip(reason)

    def _on_settings(self) -> None:
        QDesktopServices.openUrl(QUrl(SETTINGS_URL))
