"""Takes the README's picture: the real window over three real agents, after an answer of the real model.

python -m tests.gui.live_picture docs/screens
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_SCALE_FACTOR", "2")

from PySide6.QtTest import QTest

from discovery.home import temporary_home
from gui.app import connect, make_application
from gui.appearance import Appearance, Choice
from gui.bridge import Bridge
from gui.session import Phase
from gui.split.model import Split
from gui.window import Window
from runtime.cli.virtual_nodes import VirtualNodes, virtual_nodes
from runtime.models.demo import cache_folder, demo_model_folder

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTIONS = (
    "What is the capital of France? Answer in one sentence.",
    "Write a Python function that adds two numbers, then name two uses in a short list.",
)
SPLIT = (5, 18, 7)
WAIT_SECONDS = 180


def main(folder: Path) -> None:
    """Write ``running_dark.png`` and ``running_light.png`` into ``folder``."""
    make_application([])
    appearance = Appearance(Choice.DARK)
    window = Window(appearance, ask_before_close=False)
    with temporary_home() as home, VirtualNodes(virtual_nodes(3), home, cache_folder() / "demo.log") as nodes:
        nodes.started()
        bridge = Bridge(home.folder, demo_model_folder())
        connect(window, bridge)
        bridge.start()
        window.show()
        window.live.load_chart()
        try:
            _live(window)
            for choice, name in ((Choice.DARK, "dark"), (Choice.LIGHT, "light")):
                appearance.choose(choice)
                QTest.qWait(200)
                window.grab().save(str(folder / f"running_{name}.png"))
        finally:
            bridge.shutdown()
            bridge.join(60)


def _live(window: Window) -> None:
    _until(lambda: window.editor.view.counts == (10, 10, 10))
    window.store.apply_split(Split(SPLIT))
    window.header.start.click()
    _until(lambda: window.store.session.phase is Phase.RUNNING)
    for question in QUESTIONS:
        window.chat.composer.box.setPlainText(question)
        window.chat.composer.button.click()
        _until(lambda: not window.chat.answering)
    QTest.qWait(500)


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit("the window did not come that far")
        QTest.qWait(50)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
