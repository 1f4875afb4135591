"""Rows of bars: what other figures leave on the screen is what a repaint of everything would show."""

import random
from dataclasses import replace

import pytest

from gui.plots.bars import BarsView
from gui.plots.rows import BarRow, Part
from gui.theme import DARK, LIGHT
from tests.gui.pictures import afresh, on_screen

PARTS = (Part.COMPUTE, Part.WAIT, Part.HOP)
NAMES = ("Air", "MacBook Pro of somebody with a very long name, in the room at the end of the corridor", "Studio")


@pytest.fixture(params=[(3, 360), (8, 300), (3, 900)], ids=["three", "eight", "wide"])
def bars(request, dressed, qtbot):
    count, width = request.param
    view = BarsView("stage_times", PARTS, "predicted", "Nothing yet", DARK)
    qtbot.addWidget(view)
    view.resize(width, 40 * count + 60)
    with qtbot.waitExposed(view):
        view.show()
    view.show_rows(tuple(row(random.Random(index), NAMES[index % 3], f"node-{index}") for index in range(count)))
    return view


def row(draws, name, node_id):
    ends = sorted(draws.random() for _ in PARTS)
    lengths = (ends[0], ends[1] - ends[0], ends[2] - ends[1])
    words = f"computes {draws.choice((1, 10, 1000)) * draws.random():.2f} ms"
    parts = tuple(zip(PARTS, lengths, strict=True))
    return BarRow(name, "12 layers", parts, words, draws.random(), "predicted 3.2 ms", node_id=node_id)


def test_other_figures_leave_the_whole_picture(bars):
    draws = random.Random(1)
    for _ in range(20):
        bars.show_rows(
            tuple(
                row(draws, one.name, one.node_id) if draws.random() < 0.6 else replace(one, mark=draws.random())
                for one in bars.rows
            )
        )
        assert on_screen(bars) == afresh(bars)


def test_other_nodes_and_another_theme_repaint_everything(bars):
    for rows in (bars.rows[1:], (), bars.rows[:2]):
        bars.show_rows(rows)
        assert on_screen(bars) == afresh(bars)
    bars.set_theme(LIGHT)
    assert on_screen(bars) == afresh(bars)


def test_waiting_is_hatched_and_computing_is_not(bars):
    def most_colours(part):
        """Of the rows of pixels: the most colours in one."""
        bars.show_rows((replace(bars.rows[0], parts=((part, 1.0),), mark=None, name="", beside="", words=""),))
        picture = on_screen(bars)
        return max(len({picture.pixel(x, y) for x in range(150, 200)}) for y in range(bars.height() - 30))

    assert most_colours(Part.WAIT) > 3
    assert most_colours(Part.COMPUTE) == 1
