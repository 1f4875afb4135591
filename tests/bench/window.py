"""What the window costs, in CPU time: ``python -m tests.bench.window``. One process for each scale."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import count
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

if TYPE_CHECKING:
    from collections.abc import Callable

    from gui.window import Window

_STEPS = 60
_CHAT_TOKENS = 16_000
_START = """
import sys, time
from pathlib import Path
from PySide6.QtCore import QTimer
from gui import app
unmeasured, times = app.paint, []
def paint(application, window):
    unmeasured(application, window)
    times.append(time.process_time())
    QTimer.singleShot(0, lambda: times.append(time.process_time()))
    QTimer.singleShot(3000, window.close)
app.paint = paint
app.run_window(Path(sys.argv[1]) / "home", Path(sys.argv[1]))
print(*times, time.process_time())
"""
"""A whole window with everything behind it. The timer has its turn when the event loop takes what a person does."""


def _start() -> tuple[float, ...]:
    """CPU seconds from exec: to the first paint, until the window takes input, and of three seconds in all.

    As a person starts it: what was imported once is compiled, even where this process writes no bytecode.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs = []
    for _ in range(4):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", _START, folder]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        runs.append([float(word) for word in done.stdout.split()])
    return tuple(statistics.median(column) for column in zip(*runs[1:], strict=True))  # the first one may compile


def _each(step: Callable[[int], None], steps: int) -> tuple[float, float]:
    """Median and highest CPU milliseconds of a step, painting included."""
    from PySide6.QtWidgets import QApplication

    costs = []
    for index in range(steps):
        before = time.process_time()
        step(index)
        QApplication.processEvents()
        costs.append((time.process_time() - before) * 1000)
    return statistics.median(costs), max(costs)


def _run(seconds: float, step: Callable[[int], None] | None = None, rate: float = 25.0) -> float:
    """The share of a core that the event loop takes, while ``step`` is done so many times a second.

    In the loop that the app runs in: the one of QTest.qWait looks a hundred times a second, 0.4 % of a core.
    """
    from PySide6.QtCore import QEventLoop, Qt, QTimer

    loop, numbers, clock = QEventLoop(), count(), QTimer()
    clock.setTimerType(Qt.TimerType.PreciseTimer)
    if step is not None:
        clock.timeout.connect(lambda: step(next(numbers)))
        clock.start(round(1000 / rate))
    QTimer.singleShot(round(seconds * 1000), loop.quit)
    before, start = time.process_time(), time.monotonic()
    loop.exec()
    share = (time.process_time() - before) / (time.monotonic() - start)
    clock.stop()
    return share


def _drag(window: Window) -> tuple[float, float]:
    from gui import samples

    window.show_layout(samples.of_layers(128, 2**28))
    window.show_nodes(samples.many_nodes(8))
    window.store.start_drag()
    costs = _each(lambda index: window.store.move_boundary(3, 64 + (index % 8) - 4), _STEPS)
    window.store.finish_drag()
    return costs


def _live(window: Window) -> tuple[float, float]:
    """Shares of a core: streaming alone into a long chat, and everything at once with eight nodes."""
    from gui import samples
    from gui.plots.series import KEPT_SECONDS
    from runtime.cluster.messages import Text

    window.start_session()
    plan = window.store.session.plan
    assert plan is not None
    window.receive(samples.ready(plan))
    words = "A line of an answer with some **marks** in it, and a `word` of code.\n\n"
    for _ in range(_CHAT_TOKENS // 2000):
        request = window.chat.ask("Go on")
        window.receive(Text(request, words * 120, (1,)))
        window.receive(samples.finished(request))
    request = window.chat.ask("And now the last part")
    pieces = words.split(" ")

    def text(index: int) -> None:
        window.receive(Text(request, " ".join(pieces[index % 12 : index % 12 + 2]) + " ", (1, 2)))

    _run(2)  # what the chat holds already is laid out and painted
    streaming = _run(8, text)
    kept = round(KEPT_SECONDS * 10)
    speeds, counters = list(samples.throughput(KEPT_SECONDS + 60)), list(samples.counters(plan, KEPT_SECONDS + 60))
    for speed, counted in zip(speeds[:kept], counters[:kept], strict=True):
        window.receive(speed)
        window.receive(counted)
    shares, places = [], count(kept)

    def everything(index: int) -> None:
        text(index)
        if index % 5 in {0, 2}:  # ten times a second
            place = next(places)
            window.receive(speeds[place])
            window.receive(counters[place])

    for tab in ("speed", "stages", "memory"):
        window.live.show_tab(tab)
        _run(1, everything)
        shares.append(_run(6, everything))
    return streaming, max(shares)


def _idle() -> float:
    """The share of a core of a window that nobody touches."""
    _run(1.5)
    return _run(3)


def main() -> None:
    """Print everything at the scale of this process; the first process starts the other."""
    scale = os.environ.get("QT_SCALE_FACTOR")
    if scale is None:
        first, ready, settled = _start()
        print(f"first paint {first:.2f} s of CPU after exec, takes input {ready:.2f} s", flush=True)
        print(f"three seconds after the first paint, the session's side included: {settled:.2f} s of CPU", flush=True)
        for one in ("1", "2"):
            environment = {**os.environ, "QT_SCALE_FACTOR": one}
            subprocess.run([sys.executable, "-m", "tests.bench.window"], env=environment, check=True)
        return
    from gui.app import make_application
    from gui.appearance import Appearance, Choice
    from gui.window import Window

    make_application([])
    window = Window(Appearance(Choice.DARK), ask_before_close=False)
    window.resize(1280, 860)
    window.live.load_chart()
    window.show()
    drag = _drag(window)
    print(f"{scale}x: drag step, 8 nodes and 128 layers: {drag[0]:.1f} ms (highest {drag[1]:.1f})", flush=True)
    streaming, everything = _live(window)
    print(f"{scale}x: streaming 50 tok/s into a chat of 16k tokens: {streaming:.1%} of a core", flush=True)
    print(f"{scale}x: streaming and live numbers of 8 nodes: {everything:.1%} of a core", flush=True)
    print(f"{scale}x: idle: {_idle():.2%} of a core", flush=True)
    window.hide()
    print(f"{scale}x: hidden: {_idle():.2%} of a core", flush=True)
    window.close()


if __name__ == "__main__":
    main()
