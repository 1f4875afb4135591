"""A drag repaints what it changed and no more; what is on the screen is what a repaint of everything would show."""

import random

import pytest

from gui import samples
from tests.gui.pictures import afresh, on_screen


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
        on_screen(window.editor)
        before = window.editor.view.counts
        handle.nudge(draws.choice((-40, -9, -1, 1, 5, 30)))
        shown = on_screen(window.editor)
        assert shown == afresh(window.editor), (
            f"move {move}, of boundary {handle.index}: {before} to {window.editor.view.counts}"
        )
    assert bubbles
