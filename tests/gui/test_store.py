"""The window's state: sensible splits while nodes come and go, and undo."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gui import samples
from gui.session import Phase
from gui.store import Store
from runtime.cluster.messages import Ended, Failed


@pytest.fixture
def store(dressed):
    made = Store()
    made.set_layout(samples.SMALL_MODEL)
    made.set_nodes(samples.virtual_nodes())
    return made


def test_nodes_and_layout_may_come_in_any_order(dressed):
    late = Store()
    late.set_nodes(samples.virtual_nodes())
    assert late.preview is None
    late.set_layout(samples.SMALL_MODEL)
    assert late.split.counts == (10, 10, 10)
    assert late.editor_view.cards


def test_an_untouched_split_stays_even_as_nodes_come(store):
    store.set_nodes(samples.virtual_nodes()[:2])
    assert store.split.counts == (15, 15)
    store.set_nodes(samples.virtual_nodes())
    assert store.split.counts == (10, 10, 10)


def test_a_moved_split_is_kept_as_nodes_come_and_go(store):
    store.move_boundary(0, 5)
    store.move_boundary(1, 23)
    first, second, third = samples.virtual_nodes()
    store.set_nodes((first, third))
    assert store.split.counts == (23, 7)
    store.set_nodes((first, second, third))
    assert store.split.counts == (5, 18, 7), "a node that comes back finds its layers"


def test_what_a_person_does_meanwhile_counts_more_than_what_was(store):
    store.move_boundary(0, 5)
    first, second, third = samples.virtual_nodes()
    store.set_nodes((first, third))
    store.move_boundary(0, 12)
    store.set_nodes((first, second, third))
    assert store.split.counts == (12, 0, 18)


def test_a_node_that_was_left_out_takes_part_when_it_is_the_only_one(store):
    store.leave_out("virtual-a")
    assert store.split.counts == (0, 20, 10)
    store.set_nodes(samples.virtual_nodes()[:1])
    assert store.split.counts == (30,)
    store.choose_goal("even")
    assert store.split.counts == (30,)
    assert store.arrangement.left_out == frozenset()


def test_another_model_begins_with_its_own_context(store):
    store.set_context(2048)
    store.set_layout(samples.LARGE_MODEL)
    assert store.strip_view.context_tokens == 8192
    store.set_layout(samples.SMALL_MODEL)
    assert store.strip_view.context_tokens == 2048


def test_the_last_node_may_leave_and_return(store):
    store.move_boundary(0, 5)
    counts = store.split.counts
    store.set_nodes(())
    assert store.editor_view.cards == ()
    store.set_nodes(samples.virtual_nodes())
    assert store.split.counts == counts


def test_news_about_memory_changes_the_verdict_and_keeps_the_split(store):
    store.move_boundary(0, 5)
    poor = tuple(samples.node(f"Virtual {name}", "M4", 1, 0.01, virtual=True) for name in "ABC")
    store.set_nodes(poor)
    assert store.split.counts == (5, 15, 10)
    assert store.preview.plan is None
    assert "lacks" in store.preview.refusal


def test_key_presses_on_one_boundary_are_undone_together(store):
    for cut in (9, 8, 7):
        store.move_boundary(0, cut)
    store.move_boundary(1, 21)
    store.undo()
    assert store.split.counts == (7, 13, 10)
    store.undo()
    assert store.split.counts == (10, 10, 10)
    store.redo()
    assert store.split.counts == (7, 13, 10)


def test_a_drag_is_undone_in_one_step(store):
    store.start_drag()
    for cut in (9, 6, 3):
        store.move_boundary(0, cut)
    store.finish_drag()
    assert store.split.counts == (3, 17, 10)
    assert store.undo_stack.count() == 1
    store.undo()
    assert store.split.counts == (10, 10, 10)


def test_a_cancelled_drag_leaves_no_trace(store):
    store.start_drag()
    store.move_boundary(0, 3)
    store.cancel_drag()
    assert store.split.counts == (10, 10, 10)
    assert not store.undo_stack.canUndo()


def test_balancing_shares_by_free_memory(store):
    store.balance(0)  # 1 GB beside 2 GB
    assert store.split.counts == (7, 13, 10)


def test_a_running_session_keeps_its_split_and_its_nodes(store):
    store.move_boundary(0, 5)
    assert store.begin_session() is not None
    store.undo()
    store.choose_goal("even")
    store.balance(0)
    store.set_mode("tensor")
    assert store.split.counts == (5, 15, 10)
    assert store.mode == "pipeline"
    store.set_nodes(samples.virtual_nodes()[:2])
    assert len(store.nodes) == 3
    store.receive(Ended())
    assert len(store.nodes) == 2
    assert store.split.counts == (5, 25)


def test_a_second_start_does_nothing(store):
    assert store.begin_session() is not None
    assert store.begin_session() is None


def test_a_refused_plan_does_not_start(store):
    store.set_nodes(samples.macs())
    store.set_mode("tensor")
    assert store.begin_session() is None
    assert store.session.phase is Phase.IDLE


def test_a_failure_stays_until_it_is_dismissed(store):
    store.begin_session()
    store.receive(Failed("Virtual B is gone.", "virtual-b"))
    assert store.session.failure is not None
    store.dismiss_failure()
    assert store.session.failure is None


actions = st.lists(
    st.tuples(
        st.sampled_from(["move", "drag", "cancel", "even", "balance", "undo", "redo", "nodes"]),
        st.integers(0, 1),
        st.integers(-3, 33),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=60)
@given(actions)
def test_whatever_a_person_does_every_layer_keeps_one_node(steps):
    store = Store()
    store.set_layout(samples.SMALL_MODEL)
    store.set_nodes(samples.virtual_nodes())
    for action, side, number in steps:
        boundary = min(side, len(store.split.counts) - 2)
        match action:
            case "move" if boundary >= 0:
                store.move_boundary(boundary, number)
            case "drag" | "cancel" if boundary >= 0:
                store.start_drag()
                store.move_boundary(boundary, number)
                store.finish_drag() if action == "drag" else store.cancel_drag()
            case "even":
                store.choose_goal("even")
            case "balance" if boundary >= 0:
                store.balance(boundary)
            case "undo":
                store.undo()
            case "redo":
                store.redo()
            case "nodes":
                store.set_nodes(samples.virtual_nodes()[: 1 + number % 3])
            case _:
                pass  # one node has no boundary
        assert store.split.layer_count == 30
        assert len(store.split.counts) == len(store.nodes)
    while store.undo_stack.canUndo():
        store.undo()
        assert store.split.layer_count == 30
