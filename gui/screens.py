"""Renders the window in its main states: ``python -m gui.screens FOLDER``. For looking at, and for the README."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gui import samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QPixmap

    from gui.window import Window
    from runtime.cluster.messages import LoadPhase

ANSWER = """**Pipeline split.** The first node holds `layers 0–4`, so reading a question is bound by *its* bandwidth.

1. Move the boundary left until *Virtual B* reads **Tight**
2. Keep 10 % spare for the KV cache

```python
def hop_cost(hidden: int, link: float) -> float:
    return hidden * 2 / link  # seconds per token
```

| node | layers | GB |
|---|---|---|
| Studio Ultra | 32 | 162.9 |
| Studio Max | 19 | 103.7 |
"""


def empty(window: Window) -> None:
    """The model is read, no node is in reach."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(())


def demo(window: Window) -> None:
    """Three virtual nodes, ready to start."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.virtual_nodes())


def macs(window: Window) -> None:
    """Four Macs and a model that fits in none of them."""
    window.show_layout(samples.LARGE_MODEL)
    window.show_nodes(samples.macs())
    for boundary, cut in ((2, 57), (1, 51), (0, 32)):
        window.store.move_boundary(boundary, cut)


def nearby(window: Window) -> None:
    """Machines that are not paired, and the dialog that asks for a code."""
    macs(window)
    window.show_unpaired(samples.unpaired("Mia’s Mac mini", "Studio in the attic", "Old MacBook of the whole office"))
    window.trust.open_pairing(samples.unpaired("Mia’s Mac mini")[0])
    dialog = window.trust.pairing
    assert dialog is not None
    dialog.field.setText("123456")
    dialog.failed("The code is wrong, or another machine answers in the name of Mia’s Mac mini; look at it again.")


def code(window: Window) -> None:
    """This machine shows its code."""
    from runtime.agent.trust_messages import ShownCode

    demo(window)
    window.trust.open_code()
    window.trust.code_shown(ShownCode("048213", 104.0), "")


def address(window: Window) -> None:
    """An address that is none."""
    empty(window)
    window.trust.open_address()
    dialog = window.trust.address
    assert dialog is not None
    dialog.field.setText("192.168.1.300")
    dialog.add.click()


def dragged(window: Window) -> None:
    """A boundary under the mouse, and a node that is left out."""
    from PySide6.QtCore import QPoint, Qt
    from PySide6.QtTest import QTest

    demo(window)
    _settle(window)
    handle = window.editor.handles[1]
    middle = QPoint(handle.width() // 2, handle.height() // 2)
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=middle)
    QTest.mouseMove(handle, middle + QPoint(-500, 0))


def over(window: Window) -> None:
    """One Mac lacks memory, which keeps Start from starting; a boundary has the keyboard."""
    macs(window)
    window.store.move_boundary(0, 26)
    window.editor.handles[2].setFocus()


def verified(window: Window) -> None:
    """A split that was checked against the whole model."""
    from runtime.check.result import CheckResult, versions

    demo(window)
    split = window.store.split.counts
    found = CheckResult(samples.SMALL_MODEL.name, split, "pipeline", versions(), True, 0.0, 96, 16)
    window.show_checks({("pipeline", split): found})


def fastest(window: Window) -> None:
    """The fastest chat leaves the slow node out; it can be put back in."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.unequal_nodes())
    window.store.choose_goal("chat")


def tensor(window: Window) -> None:
    """Tensor mode."""
    demo(window)
    window.store.set_mode("tensor")


def tensor_refused(window: Window) -> None:
    """Tensor mode over a number of nodes that cannot share the heads."""
    window.show_layout(samples.SMALL_MODEL)
    window.show_nodes(samples.macs())
    window.store.set_mode("tensor")


def loading(window: Window) -> None:
    """Workers start, load and wait."""
    macs(window)
    window.start_session()
    plan = window.store.session.plan
    assert plan is not None
    states: tuple[tuple[LoadPhase, float], ...] = (
        ("loading", 0.62),
        ("loading", 0.48),
        ("ready", 1.0),
        ("warming up", 1.0),
    )
    for message in samples.loading(plan, states):
        window.receive(message)


def running(window: Window) -> None:
    """A session with a chat that streams."""
    demo(window)
    for boundary, cut in ((0, 5), (1, 23)):
        window.store.move_boundary(boundary, cut)
    _run(window)
    _ask(window, "What is the capital of France?")
    _answer(window, "The capital of France is **Paris**.")
    _ask(window, "How should I split this model?")
    _answer(window, ANSWER)
    for sample in samples.throughput(34):
        window.receive(sample)


def running_macs(window: Window) -> None:
    """The same on four Macs, with a first answer on its way."""
    macs(window)
    _run(window)
    _ask(window, "Why is the sky blue? Explain it to a child, in three short paragraphs.")
    for sample in samples.throughput(75, 18.0):
        window.receive(sample)


def failed(window: Window) -> None:
    """A node went away in the middle of an answer."""
    from runtime.cluster.messages import Failed, Text

    running(window)
    _ask(window, "Tell me a story about a lighthouse.")
    request = window.chat.exchanges[-1].request_id
    window.receive(Text(request, "Once, on a rock far out at sea, there stood", (1, 2, 3)))
    reason = "Virtual B stopped answering, so the session ended. Look at that Mac, then start again."
    window.receive(Failed(reason, "virtual-b"))


def many(window: Window) -> None:
    """Sixteen nodes and two hundred layers."""
    window.show_layout(samples.of_layers(200, 2**30))
    window.show_nodes(samples.many_nodes(16))


def about(window: Window) -> None:
    """What it is, and the way to the licences."""
    demo(window)
    window.show_about()


def small(window: Window) -> None:
    """The smallest window that is promised."""
    over(window)
    window.resize(1024, 700)


SCENES: tuple[Callable[[Window], None], ...] = (
    empty,
    demo,
    macs,
    nearby,
    code,
    address,
    dragged,
    over,
    verified,
    fastest,
    tensor,
    tensor_refused,
    loading,
    running,
    running_macs,
    failed,
    many,
    about,
    small,
)


def _run(window: Window) -> None:
    window.start_session()
    plan = window.store.session.plan
    assert plan is not None
    window.receive(samples.ready(plan))


def _ask(window: Window, question: str) -> None:
    window.chat.composer.box.setPlainText(question)
    window.chat.composer.button.click()


def _answer(window: Window, text: str) -> None:
    from runtime.cluster.messages import Text

    request = window.chat.exchanges[-1].request_id
    for start in range(0, len(text), 9):
        window.receive(Text(request, text[start : start + 9], (1, 2)))
    window.receive(samples.finished(request))


def _settle(window: Window) -> None:
    from PySide6.QtWidgets import QApplication

    window.show()
    for _ in range(6):
        QApplication.processEvents()


def _picture(window: Window) -> QPixmap:
    """The window with its open dialog in the middle: each is a window of its own, which a grab leaves out."""
    from PySide6.QtCore import QPoint
    from PySide6.QtGui import QPainter
    from PySide6.QtWidgets import QDialog

    picture = window.grab()
    for dialog in window.findChildren(QDialog):
        if dialog.isVisible():
            shot = dialog.grab()
            middle = window.rect().center() - dialog.rect().center()
            painter = QPainter(picture)
            painter.drawPixmap(QPoint(middle.x(), middle.y()), shot)
            painter.end()
            dialog.close()
    return picture


def render(folder: Path, theme: str, names: list[str]) -> None:
    """Write one picture per state, in one appearance, at the scale of this process."""
    from gui.app import make_application
    from gui.appearance import Appearance, Choice
    from gui.window import Window

    app = make_application(["pomona"])
    appearance = Appearance(Choice[theme.upper()])
    for scene in SCENES:
        if names and scene.__name__ not in names:
            continue
        window = Window(appearance, ask_before_close=False)
        window.speed.load_chart()
        scene(window)
        _settle(window)
        scale = f"{window.devicePixelRatioF():g}x"
        path = folder / f"{scene.__name__}_{theme}_{scale}.png"
        _picture(window).save(str(path))
        window.close()
        window.deleteLater()
        app.processEvents()


def main(arguments: list[str]) -> int:
    """Render everything, light and dark, at 1x and 2x. Qt reads the scale when it starts, so each is a process."""
    if not arguments:
        sys.stderr.write("usage: python -m gui.screens FOLDER [STATE…]\n")
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    theme = os.environ.get("POMONA_SCREENS_THEME")
    if theme is not None:
        render(folder, theme, arguments[1:])
        return 0
    for theme in ("light", "dark"):
        for scale in ("1", "2"):
            settings = {"QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": scale, "POMONA_SCREENS_THEME": theme}
            subprocess.run(
                [sys.executable, "-m", "gui.screens", *arguments], env={**os.environ, **settings}, check=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
