"""A drag repaints what it changed and no more; what is on the screen is what a repaint of everything would show."""

import random

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from gui import samples


def on_screen(window):
    """What the editor has on the screen now, without painting anything."""
    QApplication.processEvents()
    screen = QGuiApplication.primaryScreen().grabWindow(window.winId())
    ratio = screen.devicePixelRatio()
    corner = window.editor.mapTo(window, QPoint(0, 0)) * ratio
    return screen.toImage().copy(QRect(corner, window.editor.size() * ratio))


def afresh(window):
    """The same after everything was painted anew."""
    window.repaint()
    return on_screen(window)


@pytest.mark.parametrize("count", [3, 8])
def test_what_moves_leave_on_the_screen_is_the_whole_picture(window, count):
    window.show_layout(samples.of_layers(128, 2**28))
    window.show_nodes(samples.many_nodes(count))
    window.activateWindow()
    draws = random.Random(count)
    bubbles = 0
    for move in range(25):
        handle = draws.choice(window.editor.handles)
        handle.setFocus()
        bubbles += handle.wants_bubble
        on_screen(window)
        before = window.editor.view.counts
        handle.nudge(draws.choice((-40, -9, -1, 1, 5, 30)))
        shown = on_screen(window)
        assert shown == afresh(window), (
            f"move {move}, of boundary {handle.index}: {before} to {window.editor.view.counts}"
        )
    assert bubbles
