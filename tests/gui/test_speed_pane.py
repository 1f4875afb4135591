"""The live plot of tokens per second, as it is drawn."""

import pytest

from gui import samples
from gui.plots.speed import NOTHING_NOW, NOTHING_RUNS, NOTHING_YET, SpeedView
from gui.theme import DARK, LIGHT
from runtime.cluster.messages import Throughput


@pytest.fixture
def pane(qtbot, dressed):
    made = SpeedView(DARK)
    qtbot.addWidget(made)
    made.resize(480, 300)
    with qtbot.waitExposed(made):
        made.show()
    return made


def test_before_anything_runs_the_pane_says_what_will_appear(pane):
    assert pane.words == NOTHING_RUNS
    pane.set_running(running=True)
    assert pane.words == NOTHING_YET


def test_samples_before_the_plots_library_is_loaded_are_not_lost(pane):
    pane.set_running(running=True)
    for sample in samples.throughput(3):
        pane.add(sample)
    assert not pane.has_chart
    assert pane.now_words.endswith("tok/s")
    pane.load_chart()
    assert pane.has_chart
    assert pane.words == ""


def test_the_newest_speed_is_said_in_words(pane):
    pane.set_running(running=True)
    pane.add(Throughput(1.0, 31.24, 512.0, 1))
    assert pane.now_words == "31.2 tok/s"
    pane.add(Throughput(3.0, 0.0, 0.0, 0))
    assert pane.now_words == "idle"


def test_the_curve_has_the_last_minute_and_an_axis_above_it(pane):
    pane.load_chart()
    pane.set_running(running=True)
    for sample in samples.throughput(80):
        pane.add(sample)
    ages, values = pane._chart._line.getData()
    assert ages[0] == pytest.approx(-60, abs=0.5)
    assert ages[-1] == pytest.approx(0, abs=0.2)
    assert pane._chart._plot.viewRange()[0] == [-60, 0]
    top = pane._chart._plot.viewRange()[1][1]
    assert max(values) < top <= 2 * max(values)


def test_a_sample_is_drawn_when_the_curve_has_moved_a_pixel(pane, monkeypatch):
    pane.load_chart()
    pane.set_running(running=True)
    pane.set_span(300)
    drawn = []
    draw = pane._chart.draw

    def counted(ages, values, top):
        drawn.append(ages)
        draw(ages, values, top)

    monkeypatch.setattr(pane._chart, "draw", counted)
    for sample in samples.throughput(30):  # ten in a second
        pane.add(sample)
    pixels = 30 / 300 * pane._chart.width()
    assert pixels / 2 < len(drawn) <= pixels + 1
    pane.refresh()
    assert len(drawn[-1]) > len(drawn[0])
    assert pane._chart._line.getData()[1][-1] == pytest.approx(pane.series.newest[1])


def test_a_curve_that_has_slid_away_leaves_words(pane):
    pane.load_chart()
    pane.set_running(running=True)
    pane.add(Throughput(1.0, 0.0, 0.0, 0))
    assert pane.words == NOTHING_NOW.format("minute")


def test_a_new_session_begins_with_an_empty_plot_and_an_old_plot_stays(pane):
    pane.load_chart()
    pane.set_running(running=True)
    for sample in samples.throughput(5):
        pane.add(sample)
    pane.set_running(running=False)
    assert pane.words == ""
    assert not pane._clock.isActive()
    pane.set_running(running=True)
    assert pane.words == NOTHING_YET


def test_the_plot_takes_the_colours_of_the_appearance(pane):
    pane.load_chart()
    pane.set_theme(LIGHT)
    assert pane._chart._line.opts["pen"].color() == LIGHT.accent
    pane.set_running(running=True)
    for sample in samples.throughput(5):
        pane.add(sample)
    assert not pane.grab().isNull()
