"""Opens the dialogs of trust over the window, brings their wishes out and the outcomes back in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from gui.nodes.dialogs import AddressDialog, CodeDialog, PairDialog
from gui.nodes.this_mac import ThisMacDialog

if TYPE_CHECKING:
    from PySide6.QtWidgets import QDialog

    from discovery.local_network import Verdict
    from gui.window import Window
    from runtime.agent.trust_messages import ShownCode
    from runtime.cluster.nodes import UnpairedNode


class TrustKeeper(QObject):
    """At most one of each dialog is open.

    Signals:
        pair_wanted: ``(UnpairedNode, code)``.
        remove_wanted: A node id: trust it no more.
        code_wanted: Show a code on this machine.
        code_unwanted: Show none any more.
        address_wanted: :class:`discovery.address.HostPort`: look there from now on.
        network_wanted: Look whether the network works; :meth:`network_checked` follows.
        sharing_wanted: Look whether this machine is shared at login; :meth:`sharing_told` follows.
        share_wanted: Whether it shall be; :meth:`sharing_told` follows.
    """

    pair_wanted = Signal(object, str)
    remove_wanted = Signal(str)
    code_wanted = Signal()
    code_unwanted = Signal()
    address_wanted = Signal(object)
    network_wanted = Signal()
    sharing_wanted = Signal()
    share_wanted = Signal(bool)

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._window = window
        self.pairing: PairDialog | None = None
        self.code: CodeDialog | None = None
        self.address: AddressDialog | None = None
        self.this_mac: ThisMacDialog | None = None

    def open_pairing(self, node: UnpairedNode) -> None:
        """Ask for the code of a machine."""
        if self.pairing is not None:
            if self.pairing.node.node_id == node.node_id:
                self._raise(self.pairing)
                return
            self.pairing.close()
        dialog = self.pairing = PairDialog(node, self._window.appearance.theme, self._window)
        dialog.code_typed.connect(self.pair_wanted)
        dialog.finished.connect(self._on_pairing_closed)
        dialog.show()
        dialog.field.setFocus()

    def open_code(self) -> None:
        """Show this machine's code."""
        if self.code is None:
            self.code = CodeDialog(self._window.appearance.theme, self._window)
            self.code.renewed.connect(self.code_wanted)
            self.code.hidden.connect(self.code_unwanted)
            self.code.finished.connect(self._on_code_closed)
            self.code_wanted.emit()
        self._raise(self.code)

    def open_address(self) -> None:
        """Ask for an address."""
        if self.address is None:
            self.address = AddressDialog(self._window.appearance.theme, self._window)
            self.address.address_typed.connect(self.address_wanted)
            self.address.finished.connect(self._on_address_closed)
        self._raise(self.address)
        self.address.field.setFocus()

    def open_this_mac(self) -> None:
        """Test the network, and offer to share this machine at login."""
        if self.this_mac is None:
            self.this_mac = ThisMacDialog(self._window.appearance.theme, self._window)
            self.this_mac.test_wanted.connect(self.network_wanted)
            self.this_mac.share_wanted.connect(self.share_wanted)
            self.this_mac.finished.connect(self._on_this_mac_closed)
            self.this_mac.begin()
            self.sharing_wanted.emit()
        self._raise(self.this_mac)

    def close_all(self) -> None:
        """The window goes, and they with it."""
        for dialog in (self.pairing, self.code, self.address, self.this_mac):
            if dialog is not None:
                dialog.close()

    @Slot(str, str)
    def pairing_over(self, node_id: str, trouble: str) -> None:
        """Pairing with a node worked, or did not, and why."""
        if self.pairing is None or self.pairing.node.node_id != node_id:
            return
        if trouble:
            self.pairing.failed(trouble)
        else:
            self.pairing.close()

    @Slot(object, str)
    def code_shown(self, shown: ShownCode | None, trouble: str) -> None:
        """This machine shows a code, or cannot, and why."""
        if self.code is None:
            return
        if shown is not None:
            self.code.show_code(shown)
        else:
            self.code.failed(trouble)

    @Slot(object)
    def network_checked(self, verdict: Verdict) -> None:
        """What the test of the network found."""
        if self.this_mac is not None:
            self.this_mac.show_verdict(verdict)

    @Slot(bool, str, str)
    def sharing_told(self, on: bool, reason: str, trouble: str) -> None:
        """Whether this machine is shared at login, why it cannot be switched, and why it could not be."""
        if self.this_mac is not None:
            self.this_mac.show_sharing(on=on, reason=reason)
            self.this_mac.say_trouble(trouble)

    def _raise(self, dialog: QDialog) -> None:
        dialog.show()
        dialog.activateWindow()

    def _on_pairing_closed(self) -> None:
        if self.sender() is self.pairing:
            self.pairing = None

    def _on_code_closed(self) -> None:
        self.code = None

    def _on_address_closed(self) -> None:
        self.address = None

    def _on_this_mac_closed(self) -> None:
        self.this_mac = None
