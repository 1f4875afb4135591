"""How messages change the session's state, and the sentence that says it."""

import pytest

from gui import samples
from gui.preview import make_preview
from gui.session import Phase, SessionState, changing, received, started, stopping
from gui.split.card import Tone
from gui.split.model import Split
from gui.status import status
from runtime.cluster.messages import Ended, Failed, LoadProgress, PlanRefused, Recovering, Serving, Text

NODES = [known.resources for known in samples.virtual_nodes()]
PREVIEW = make_preview(samples.SMALL_MODEL, NODES, Split((5, 18, 7)), "pipeline")
assert PREVIEW.plan is not None
PLAN = PREVIEW.plan


@pytest.fixture
def loading():
    state = started(PLAN)
    for message in samples.loading(PLAN, [("loading", 0.5), ("starting", 0.0), ("ready", 1.0)]):
        state = received(state, message)
    return state


def test_a_session_loads_runs_stops_and_is_over(loading):
    assert loading.phase is Phase.LOADING
    running = received(loading, samples.ready(PLAN))
    assert running.phase is Phase.RUNNING
    held = running.held_by("virtual-b")
    assert held is not None
    assert held.last_layer == 22
    assert stopping(running).phase is Phase.STOPPING
    assert received(stopping(running), Ended()) == SessionState()


def test_the_address_for_programs_stays_as_long_as_the_session(loading):
    serving = Serving("http://127.0.0.1:52520/v1", "model", "key")
    running = received(received(loading, serving), samples.ready(PLAN))
    assert running.serving == serving
    assert received(running, Ended()).serving is None


def test_progress_is_kept_per_rank_and_the_newest_counts(loading):
    for message in samples.loading(PLAN, [("loading", 0.75), ("loading", 0.25), ("ready", 1.0)]):
        loading = received(loading, message)
    assert [one.rank for one in loading.progress] == [0, 1, 2]
    assert loading.progress_of("virtual-a").loaded_bytes == round(PLAN.stages[0].ranks[0].weight_bytes * 0.75)
    assert loading.progress_of("someone-else") is None


def test_ranks_that_said_nothing_yet_count_in_the_total():
    planned = sum(rank.weight_bytes for stage in PLAN.stages for rank in stage.ranks)
    assert started(PLAN).total_bytes == planned


def test_a_failure_ends_the_session_and_stays_known(loading):
    failure = Failed("Virtual B stopped answering.", "virtual-b")
    over = received(loading, failure)
    assert not over.active
    assert over.failure == failure
    assert received(over, Ended()).failure == failure


def test_what_a_run_measured_is_known_until_another_plan_runs(loading):
    run = samples.run_measured(PLAN)
    assert received(loading, run) is loading
    running = received(received(loading, samples.ready(PLAN)), run)
    assert running.run == run
    assert received(running, samples.ready(PLAN)).run is None


def test_messages_about_answers_change_nothing(loading):
    assert received(loading, Text("1", "hello", (1,))) is loading


def test_late_progress_of_a_session_that_is_over_is_ignored():
    (message, *_) = samples.loading(PLAN, [("loading", 0.5)] * 3)
    assert received(SessionState(), message) == SessionState()


def test_ready_after_stop_was_pressed_does_not_run_again(loading):
    assert received(stopping(loading), samples.ready(PLAN)).phase is Phase.STOPPING


def test_the_status_says_that_it_can_start():
    said = status(samples.SMALL_MODEL, PREVIEW, SessionState())
    assert said.can_start
    assert said.words == "Ready to start: 30 layers on 3 nodes."


def test_the_status_says_the_planners_reason_when_it_cannot():
    refused = make_preview(samples.SMALL_MODEL, NODES, Split((5, 18, 8)), "pipeline")
    said = status(samples.SMALL_MODEL, refused, SessionState())
    assert not said.can_start
    assert said.words == refused.refusal
    assert said.tone is Tone.BAD


def test_the_status_says_why_boundaries_do_not_move_while_it_loads(loading):
    assert "Cancel to move boundaries" in status(samples.SMALL_MODEL, PREVIEW, loading).words


def test_the_status_tells_a_change_and_what_came_of_it(loading):
    running = received(loading, samples.ready(PLAN), 1.0)
    assert said(running) == "Running on Virtual A, Virtual B and Virtual C."
    changed = changing(running, 10.0)
    assert said(changed) == "Changing the split: answers pause and go on."
    assert not changed.can_change
    done = received(changed, samples.ready(PLAN), 12.3)
    assert done.can_change
    assert said(done).endswith("The split changed in 2.3 s; nothing had to be loaded.")


def test_a_refused_change_leaves_the_session_as_it_is(loading):
    running = received(loading, samples.ready(PLAN), 1.0)
    assert received(changing(running, 10.0), PlanRefused("No.")).can_change


def test_a_loss_is_told_with_the_pause_and_the_node(loading):
    running = received(loading, samples.ready(PLAN), 1.0)
    lost = received(running, Recovering("Virtual B is gone.", "virtual-b"), 20.0)
    assert said(lost) == "Going on without Virtual B: answers pause and go on."
    of_none = received(running, Recovering("The link broke."), 20.0)
    assert said(of_none) == "The link broke. Going on without it: answers pause and go on."
    nodes = [NODES[0], NODES[2]]
    done = received(lost, samples.ready(samples.plan_over(samples.SMALL_MODEL, nodes, (14, 16))), 24.2)
    assert done.lost == {"virtual-b"}
    assert said(done) == "Running on Virtual A and Virtual C. It went on without Virtual B after 4.2 s."


def said(state):
    return status(samples.SMALL_MODEL, PREVIEW, state).words


def test_the_status_counts_loaded_bytes(loading):
    assert status(samples.SMALL_MODEL, PREVIEW, loading).words.startswith("Loading: ")


def test_the_status_tells_how_fast_all_load_and_how_long_the_slowest_takes(loading):
    gib = 2**30
    for rank, (rate, left) in enumerate(((gib, 20.0), (2 * gib, 5.0), (0.0, None))):
        message = LoadProgress(rank, f"node-{rank}", f"Node {rank}", "loading", gib, 2 * gib, rate, left)
        loading = received(loading, message)
    words = said(loading)
    assert "at 3.0 GB/s, 20 s left" in words
    assert words.endswith("Cancel to move boundaries.")


def test_without_model_or_nodes_the_status_says_what_is_awaited():
    assert "choose a model" in status(None, None, SessionState()).words
    empty = make_preview(samples.SMALL_MODEL, [], Split(()), "pipeline")
    assert "no node is in reach" in status(samples.SMALL_MODEL, empty, SessionState()).words
