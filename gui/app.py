"""Starts the window: fonts, theme, the window itself, and then what works behind it; in the end all down in order.

The window is on the screen before the network's libraries are imported, which takes as long as all of the rest.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QEventLoop
from PySide6.QtWidgets import QApplication

from gui.appearance import Appearance
from gui.keeper import Keeper
from gui.terminal import TerminalSignals
from gui.theme import interface_font, load_fonts
from gui.window import Window
from runtime.app_nap import stay_responsive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

logger = logging.getLogger(__name__)

_PAINT_LIMIT_SECONDS = 0.5
"""Some window managers show a window only later, or never; then the rest begins all the same."""
_PAINT_LOOK_MS = 10


def run_window(
    home: Path,
    model_folder: Path | None = None,
    *,
    behind: Callable[[], None] | None = None,
    demo: bool = False,
    ask_before_close: bool = True,
    self_test: bool = False,
) -> int:
    """Show the window and return when it is closed and everything that it started has ended.

    Args:
        home: The folder with this machine's identity and trust.
        model_folder: The MLX model to run; None for the one of last time, or lets the person choose.
        behind: Starts what works behind the window, once it is painted, in another thread. What
            :class:`PomonaError` it raises is said in the window.
        demo: Whether the demo model is shown, and nobody is guided.
        ask_before_close: Whether closing asks while a session runs.
        self_test: Whether the window is used by itself, once; the exit status then says whether there was an answer.
    """
    stay_responsive()
    app = make_application(sys.argv[:1])
    signals = TerminalSignals()
    window = Window(Appearance(), ask_before_close=ask_before_close)
    keeper = Keeper(window, home)
    remembered = keeper.restore()
    window.show()
    paint(app, window)

    from gui.bridge import Bridge
    from gui.loop import LOST_SECONDS
    from gui.quitter import Quitter
    from gui.self_test import SelfTest
    from gui.wiring import connect

    bridge = Bridge(home, remembered if model_folder is None else model_folder, behind=behind, demo=demo)
    connect(window, bridge)
    bridge.model_chosen.connect(keeper.keep_model)
    quitter = Quitter(app, window, bridge, signals)
    test = SelfTest(window) if self_test else None
    previous_hook, sys.excepthook = sys.excepthook, quitter.on_exception
    try:
        bridge.start()
        if test is not None:
            test.start()
        elif model_folder is None and keeper.first_time and not demo:
            window.trust.open_this_mac()
        code = app.exec()
    finally:
        sys.excepthook = previous_hook
        signals.close()
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


def paint(app: QApplication, window: Window) -> None:
    """Return once the window has been painted. What a person does meanwhile waits until there is someone to do it."""
    unheard = QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents
    over = time.monotonic() + _PAINT_LIMIT_SECONDS
    handle = window.windowHandle()
    while not handle.isExposed() and time.monotonic() < over:
        app.processEvents(unheard, _PAINT_LOOK_MS)
    app.processEvents(unheard)
