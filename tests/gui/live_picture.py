"""Takes the README's pictures: the real window over three real agents, after answers of the real model.

python -m tests.gui.live_picture docs/screens
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_SCALE_FACTOR", "2")

from PySide6.QtTest import QTest

from discovery.home import temporary_home
from gui.app import make_application
from gui.appearance import Appearance, Choice
from gui.bridge import Bridge
from gui.session import Phase
from gui.split.model import Split
from gui.window import Window
from gui.wiring import connect
from runtime.agent.calibration import measure_once
from runtime.agent.folder import data_folder
from runtime.cli.virtual_nodes import VirtualNodes, virtual_nodes
from runtime.models.cache_folder import cache_folder
from runtime.models.demo import demo_model_folder

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTIONS = (
    "What is the capital of France? Answer in one sentence.",
    "Write a Python function that adds two numbers, then name two uses in a short list.",
)
SPLIT = (5, 18, 7)
BENCH = ("64", "16", "1, 4", "2")
WAIT_SECONDS = 300


def main(folder: Path) -> None:
    """Write the pictures into ``folder``: it runs, a moved boundary is offered, stages, benchmark, a lost node, log.

    As in the demo, the machine is measured first, so that what is predicted is for this one.
    """
    asyncio.run(measure_once(data_folder(), version("mlx")))
    make_application([])
    appearance = Appearance(Choice.DARK)
    window = Window(appearance, ask_before_close=False)
    with temporary_home() as home, VirtualNodes(virtual_nodes(3), home, cache_folder() / "demo.log") as nodes:
        started = nodes.started()
        bridge = Bridge(home.folder, demo_model_folder())
        connect(window, bridge)
        bridge.unpaired_changed.disconnect(window.show_unpaired)  # whoever else is on this network is nobody's business
        bridge.start()
        window.show()
        window.live.load_chart()
        try:
            _live(window)
            _take(window, folder, "running", Choice.DARK)
            window.store.move_boundary(0, SPLIT[0] + 3)
            QTest.qWait(100)
            _take(window, folder, "apply", Choice.LIGHT)
            window.desk.apply()
            _until(lambda: window.store.session.outcome is not None)
            window.live.show_tab("stages")
            _ask(window, QUESTIONS[1])
            _until(lambda: not window.chat.answering and window.store.session.run is not None)
            _take(window, folder, "stages", Choice.DARK)
            window.show_pane("bench")
            for field, text in zip(window.bench.form.fields, BENCH, strict=True):
                field.setText(text)
            window.bench.form.comparison.setCurrentIndex(1)
            window.bench.form.changed.emit()
            window.bench.run.click()
            _until(lambda: not window.benching.busy)
            _take(window, folder, "bench", Choice.LIGHT)
            window.deck.show_pane("chat")
            _ask(window, "Write a long story about a fox.")
            _until(lambda: len(window.chat.answers[-1].text) > 200)
            os.kill(started[1].pid, signal.SIGKILL)
            _until(lambda: bool(window.store.session.lost))
            _until(lambda: window.chat.exchanges[-1].remark != "" and not window.chat.exchanges[-1].pause)
            QTest.qWait(1500)
            _take(window, folder, "lost", Choice.LIGHT)
            window.deck.show_pane("log")
            QTest.qWait(2500)
            _take(window, folder, "log", Choice.DARK)
        finally:
            bridge.shutdown()
            bridge.join(60)


def _live(window: Window) -> None:
    _until(lambda: window.editor.view.counts == (10, 10, 10))
    window.store.apply_split(Split(SPLIT))
    window.header.start.click()
    _until(lambda: window.store.session.phase is Phase.RUNNING)
    for question in QUESTIONS:
        _ask(window, question)
        _until(lambda: not window.chat.answering)
    QTest.qWait(500)


def _ask(window: Window, question: str) -> None:
    window.chat.composer.box.setPlainText(question)
    window.chat.composer.button.click()


def _take(window: Window, folder: Path, name: str, *choices: Choice) -> None:
    for choice in choices:
        window.appearance.choose(choice)
        QTest.qWait(200)
        window.grab().save(str(folder / f"{name}_{choice.name.lower()}.png"))


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit("the window did not come that far")
        QTest.qWait(50)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
