"""Starts the window: fonts, theme, bridge, signals, and in the end everything down again in order."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSocketNotifier, QTimer, Signal, Slot
from PySide6.QtWidgets import QApplication

from gui.appearance import Appearance
from gui.bench.errands import BenchErrands
from gui.bridge import LOST_SECONDS, Bridge
from gui.keeper import Keeper
from gui.logs.errands import LogErrands
from gui.runner import sentence
from gui.self_test import SelfTest
from gui.theme import interface_font, load_fonts
from gui.window import Window
from runtime.app_nap import stay_responsive

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType, TracebackType

    from gui.models.bridge import ModelBridge

logger = logging.getLogger(__name__)

_CHART_DELAY_MS = 150
"""The plot's library is imported this long after the window is up."""


def run_window(home: Path, model_folder: Path | None, *, ask_before_close: bool = True, self_test: bool = False) -> int:
    """Show the window and return when it is closed and everything that it started has ended.

    Args:
        home: The folder with this machine's identity and trust.
        model_folder: The MLX model to run; None lets the person choose.
        ask_before_close: Whether closing asks while a session runs.
        self_test: Whether the window is used by itself, once; the exit status then says whether there was an answer.
    """
    stay_responsive()
    app = make_application(sys.argv[:1])
    appearance = Appearance()
    window = Window(appearance, ask_before_close=ask_before_close)
    keeper = Keeper(window, home)
    bridge = Bridge(home, keeper.restore() if model_folder is None else model_folder)
    connect(window, bridge)
    bridge.model_chosen.connect(keeper.keep_model)
    quitter = _Quitter(app, window, bridge)
    test = SelfTest(window) if self_test else None
    previous_hook, sys.excepthook = sys.excepthook, quitter.on_exception
    try:
        bridge.start()
        window.show()
        if test is not None:
            test.start()
        elif model_folder is None and keeper.first_time:
            window.trust.open_this_mac()
        QTimer.singleShot(_CHART_DELAY_MS, window.live.load_chart)
        code = app.exec()
    finally:
        sys.excepthook = previous_hook
        quitter.close()
        bridge.shutdown()
        if not bridge.join():
            logger.error("the background thread did not end within %.0f s", LOST_SECONDS)
    return code if test is None else code or test.status


def make_application(arguments: list[str]) -> QApplication:
    """The one QApplication, with fonts and, away from macOS, Qt's Fusion style."""
    existing = QApplication.instance()
    app = existing if isinstance(existing, QApplication) else QApplication(arguments)
    app.setApplicationName("Pomona")
    app.setQuitOnLastWindowClosed(False)  # the bridge has to end first
    if sys.platform != "darwin":
        app.setStyle("Fusion")
    load_fonts()
    app.setFont(interface_font())
    return app


def connect(window: Window, bridge: Bridge) -> None:
    """Join what the window wants with who can do it."""
    bridge.nodes_changed.connect(window.show_nodes)
    bridge.links_changed.connect(window.store.set_links)
    bridge.unpaired_changed.connect(window.show_unpaired)
    bridge.pairing_over.connect(window.trust.pairing_over)
    bridge.code_shown.connect(window.trust.code_shown)
    window.trust.pair_wanted.connect(bridge.pair)
    window.trust.remove_wanted.connect(bridge.remove_node)
    window.trust.code_wanted.connect(bridge.show_code)
    window.trust.code_unwanted.connect(bridge.hide_code)
    window.trust.address_wanted.connect(bridge.add_address)
    bridge.network_checked.connect(window.trust.network_checked)
    bridge.sharing_told.connect(window.trust.sharing_told)
    window.trust.network_wanted.connect(bridge.check_network)
    window.trust.sharing_wanted.connect(bridge.tell_sharing)
    window.trust.share_wanted.connect(bridge.share)
    window.memory.cap_wanted.connect(bridge.set_memory_cap)
    bridge.model_reading.connect(window.welcome.show_reading)
    window.models.model_wanted.connect(bridge.choose_model)
    connect_models(window, bridge.models)
    connect_settings(window, bridge)
    bridge.layout_read.connect(window.show_layout)
    bridge.session_found.connect(window.adopt_session)
    bridge.session_message.connect(window.receive)
    bridge.checks_read.connect(window.show_checks)
    bridge.check_done.connect(window.show_check_result)
    bridge.trouble.connect(window.show_trouble)
    window.session_wanted.connect(bridge.start_session)
    window.resplit_wanted.connect(bridge.resplit)
    window.leave_wanted.connect(bridge.leave_session)
    window.stop_wanted.connect(bridge.stop_session)
    window.check_wanted.connect(bridge.check)
    window.check_cancel_wanted.connect(bridge.cancel_check)
    window.asked.connect(bridge.ask)
    window.cancel_wanted.connect(bridge.cancel)
    BenchErrands(window.benching, bridge)
    LogErrands(window.logs, bridge)


def connect_models(window: Window, models: ModelBridge) -> None:
    """The same for what concerns models."""
    pane = window.models_pane
    models.catalogue_read.connect(window.models.show_models)
    models.catalogue_read.connect(pane.show_catalogue)
    models.search_over.connect(pane.show_found)
    models.described.connect(pane.show_description)
    models.fetches_changed.connect(window.models_desk.show_fetches)
    models.opened.connect(window.models_desk.show_opened)
    window.models.models_wanted.connect(models.refresh)
    window.models_desk.fetch_wanted.connect(models.fetch_plan)
    pane.search_wanted.connect(models.search)
    pane.describe_wanted.connect(models.describe)
    pane.mark_wanted.connect(models.mark)
    pane.keep_wanted.connect(models.fetch_full)
    pane.delete_wanted.connect(models.remove)
    pane.pause_wanted.connect(models.pause)
    pane.resume_wanted.connect(models.resume)
    pane.end_wanted.connect(models.give_up)


def connect_settings(window: Window, bridge: Bridge) -> None:
    """The same for settings."""
    settings = window.settings
    bridge.settings.preferences = settings.preferences  # as the window remembered them, before the loop runs
    bridge.settings.keeping_told.connect(settings.show_keeping)
    bridge.settings.key_told.connect(settings.show_key)
    bridge.sharing_told.connect(settings.show_sharing)
    settings.preferences_changed.connect(bridge.settings.set_preferences)
    settings.keeping_wanted.connect(bridge.settings.tell_keeping)
    settings.folder_wanted.connect(bridge.settings.choose_folder)
    settings.token_wanted.connect(bridge.settings.keep_token)
    settings.key_wanted.connect(bridge.settings.tell_key)
    settings.new_key_wanted.connect(bridge.settings.renew_key)


class _Quitter(QObject):
    """The order of the end: the window closes, the bridge ends its session and its loop, then the application goes.

    Signals:
        failed: A sentence about an exception that nobody caught, from whichever thread.
    """

    failed = Signal(str)

    def __init__(self, app: QApplication, window: Window, bridge: Bridge) -> None:
        super().__init__()
        self._app, self._window, self._bridge = app, window, bridge
        window.closed.connect(self._on_closed)
        bridge.stopped.connect(self._on_bridge_stopped)
        self.failed.connect(window.show_trouble)
        self._limit = QTimer(self)
        self._limit.setSingleShot(True)
        self._limit.timeout.connect(app.quit)
        # A signal from the terminal only writes a byte; Qt reads it in its own time, when Python may run.
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_signal)
        self._previous_wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._previous = {number: signal.signal(number, _ignore) for number in (signal.SIGINT, signal.SIGTERM)}

    def close(self) -> None:
        """Give the signals back."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_wakeup)
        self._notifier.setEnabled(False)
        self._reader.close()
        self._writer.close()

    def on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Slots cannot raise to anyone, so what they raise arrives here."""
        logger.error("uncaught", exc_info=(kind, error, trace))
        self.failed.emit(sentence(error))

    @Slot()
    def _on_signal(self) -> None:
        received = set(self._reader.recv(64))
        if received & {signal.SIGINT, signal.SIGTERM}:
            self._window.close_now()

    @Slot()
    def _on_closed(self) -> None:
        if not self._bridge.running:
            self._app.quit()
            return
        self._limit.start(round(LOST_SECONDS * 1000))
        self._bridge.shutdown()

    @Slot()
    def _on_bridge_stopped(self) -> None:
        if not self._window.isVisible():
            self._app.quit()


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """The wakeup byte is what counts."""
