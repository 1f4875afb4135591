"""What is measured of a session, as rows, words and files."""

import csv
import io

import msgspec
import pytest
from PySide6.QtTest import QTest

from gui import samples
from gui.plots.history import History
from gui.plots.rows import Part, memory_rows, stage_rows
from runtime.cluster.messages import Throughput

NODES = [known.resources for known in samples.virtual_nodes()]
PLAN = samples.plan_over(samples.SMALL_MODEL, NODES, (5, 18, 7))


@pytest.fixture
def running(demo_window):
    demo_window.live.load_chart()
    demo_window.store.move_boundary(0, 5)
    demo_window.store.move_boundary(1, 23)
    demo_window.start_session()
    demo_window.receive(samples.ready(demo_window.store.session.plan))
    return demo_window


def measure(window, seconds):
    plan = window.store.session.plan
    for sample in (*samples.throughput(seconds), *samples.counters(plan, seconds)):
        window.receive(sample)


def test_rates_are_the_difference_of_counters_over_the_newest_second():
    history = History()
    for sample in samples.counters(PLAN, 5.0, mean=20.0):
        history.add_counters(sample)
    rates = history.rates
    assert [rate.node_id for rate in rates] == ["virtual-a", "virtual-b", "virtual-c"]
    assert [rate.total_seconds for rate in rates] == pytest.approx([0.05] * 3)
    assert rates[1].compute_seconds == pytest.approx(0.05 * 0.9 * 18 / 30)
    assert rates[1].hop_seconds == pytest.approx(0.0008)


def test_workers_that_began_anew_are_not_compared_with_those_before():
    history = History()
    for seconds in (5.0, 3.0):
        for sample in samples.counters(PLAN, seconds):
            history.add_counters(sample)
    assert all(rate.compute_seconds > 0 for rate in history.rates)


def test_stages_are_drawn_to_one_scale_with_what_was_predicted_beside():
    history = History()
    for sample in samples.counters(PLAN, 3.0):
        history.add_counters(sample)
    rows = stage_rows(PLAN, history.rates)
    assert [row.name for row in rows] == ["Virtual A", "Virtual B", "Virtual C"]
    compute = [dict(row.parts)[Part.COMPUTE] for row in rows]
    assert compute[1] > compute[2] > compute[0]
    assert all(sum(length for _, length in row.parts) <= 1 + 1e-9 for row in rows)
    assert rows[0].words.startswith("computes ")
    assert rows[0].mark_words == f"predicted {PLAN.stages[0].decode_seconds * 1000:.2f} ms at 8k"
    assert stage_rows(PLAN, ())[0].words == "no step yet"


def test_after_a_chat_the_prediction_is_for_as_much_context_as_the_chat_had():
    run = samples.run_measured(PLAN)
    less = msgspec.structs.replace(
        run,
        stages=tuple(msgspec.structs.replace(one, predicted_seconds=one.predicted_seconds / 2) for one in run.stages),
    )
    rows = stage_rows(PLAN, (), less)
    assert rows[0].mark_words == f"predicted {PLAN.stages[0].decode_seconds * 500:.2f} ms"
    other = msgspec.structs.replace(less, stages=less.stages[1:])
    assert stage_rows(PLAN, (), other) == stage_rows(PLAN, ())  # of a split that ran before


def test_memory_is_said_in_words_and_length():
    held = samples.ready(PLAN).ranks
    row = memory_rows(PLAN, held, {"virtual-a": 10 * 2**20})[0]
    assert row.words == "43 MB weights · 10 MB of 30 MB cache"
    assert dict(row.parts)[Part.WEIGHTS] == pytest.approx(held[0].held_bytes / PLAN.stages[0].ranks[0].budget_bytes)


def test_the_pane_shows_each_of_them(running):
    measure(running, 3.0)
    live = running.live
    assert live.now.text().endswith("tok/s")
    assert live.in_flight.text() == "1 request"
    live.show_tab("stages")
    assert len(live.stages.rows) == 3
    assert "Virtual B: computes" in live.stages.accessibleDescription()
    live.show_tab("memory")
    assert len(live.memory.rows) == 3
    assert not live.grab().isNull()


def test_a_paused_pane_holds_its_picture_and_keeps_counting(running):
    measure(running, 3.0)
    running.live.show_tab("stages")
    shown = running.live.stages.rows
    running.live.pause.click()
    for sample in samples.counters(running.store.session.plan, 6.0, mean=10.0):
        running.receive(sample)
    assert running.live.stages.rows == shown
    running.live.pause.click()
    assert running.live.stages.rows != shown


def test_the_value_under_the_mouse_is_told(running):
    measure(running, 20.0)
    running.live.speed._on_hovered(-10.0)
    assert running.live.now.text().endswith("tok/s, 10 s ago")
    running.live.speed._on_hovered(None)
    assert running.live.now.text().endswith("tok/s")


def test_a_mouse_over_the_chart_moves_its_line(running, qtbot):
    measure(running, 40.0)
    chart = running.live.speed._chart
    with qtbot.waitSignal(chart.hovered) as hovered:
        QTest.mouseMove(chart._plot.viewport(), chart._plot.viewport().rect().center())
    assert -60 < hovered.args[0] < 0


def test_five_minutes_can_be_looked_back(running):
    measure(running, 120.0)
    running.live._spans.actions()[1].trigger()
    assert running.live.speed._chart._plot.viewRange()[0] == [-300, 0]


def test_a_table_and_a_picture_are_exported(running, tmp_path, qtbot):
    measure(running, 5.0)
    table, picture = tmp_path / "live.csv", tmp_path / "live.png"
    running.live.export(table)
    running.live.export(picture)
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert len(rows) == 50
    assert float(rows[-1]["decode_tokens_per_second"]) > 20
    assert float(rows[-1]["Virtual B compute ms"]) > float(rows[-1]["Virtual A compute ms"]) > 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    running.live.export(tmp_path / "no" / "where.csv")
    assert "cannot be written" in running.banner.words


def test_a_new_session_forgets_the_old_ones_samples(running):
    measure(running, 5.0)
    running.live.add(Throughput(0.1, 3.0, 0.0, 1))
    assert len(running.live.history) == 1
